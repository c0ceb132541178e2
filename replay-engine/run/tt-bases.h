/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The images below the disks of a run, as they were when the run began to use them:
 * RUN/disks/bases (docs/reference/run-disks.rst). What a guest wrote can be written into
 * an image only as long as that is what it was; and what was made of it is noted here.
 *
 * Context: any thread, one at a time for a directory. Blocks on files. @disks is the
 * directory RUN/disks. Bytes of the file may be hostile: every number is bounded.
 */
#ifndef TT_BASES_H
#define TT_BASES_H

#include "io/tt-base.h"

#define TT_BASES_NAME       "bases"
#define TT_BASES_BYTES_MAX  (1u << 24)
#define TT_BASES_DISKS_MAX  4096
#define TT_BASE_FILES_MAX   256

typedef enum TtBaseState {
    TT_BASE_FRESH,              /* nothing of the disk was committed */
    TT_BASE_BEGUN,              /* a commit began; if none runs, it was killed */
    TT_BASE_PARTIAL,            /* a commit ended in the middle, with an error */
    TT_BASE_DONE,               /* the image has all that the disk has */
} TtBaseState;

/* What a file looks like. Two that are equal in this are taken to be the same. */
typedef struct TtBaseFile {
    char *path;                 /* absolute, or relative to the run */
    uint64_t size_bytes, mtime_ns;
    uint64_t sum;               /* of some of its bytes, see tt_basefile_look */
} TtBaseFile;

typedef struct TtBase {
    char *name;                 /* of the disk NAME.tt */
    char *image;                /* below it, as its head said when it was made; "": none */
    uint32_t version;           /* of the disk @image, of a branch; 0: none */
    TtBaseState state;
    TtBaseFile disk;            /* DONE: the disk itself then; no path, no sum */
    unsigned n_files;           /* 0: the image is no file, or is not known */
    TtBaseFile *files;
} TtBase;

typedef struct TtBases {
    bool is_there;              /* not of a run of an older version */
    unsigned n;
    TtBase **base;
} TtBases;

/* TT_OK, also if there is no such file (then it is empty); TT_ERR_FORMAT, _LIMIT, _IO:
 * @b is empty. tt_bases_cleanup frees what is in @b. */
TtStatus tt_bases_load(const char *disks, TtBases *b, TtDiag *diag);
/* In the place of the old file, on disk; without entries there is no file. */
TtStatus tt_bases_save(const char *disks, const TtBases *b, TtDiag *diag);
void tt_bases_cleanup(TtBases *b);

/* NULL: none. */
TtBase *tt_bases_find(const TtBases *b, const char *name);
/* A fresh one, in place of another of that name. */
TtBase *tt_bases_add(TtBases *b, const char *name, const char *image, uint32_t version);
void tt_bases_remove(TtBases *b, const char *name);
/* One more file of @k. False: it cannot be read, or there are too many. */
bool tt_base_add_file(TtBase *k, const char *path, const char *disks);

/*
 * tt_basefile_look: size, time of the last write, and a checksum (XXH3) of the first and
 * last 64 KiB and of 16 pages between
 * A copy that kept the time, or a write that set it back, is seen by that, unless it
 * changed other bytes only. False, errno: it cannot be read. Reads 192 KiB at most.
 */
bool tt_basefile_look(const char *path, TtBaseFile *f);
/*
 * tt_base_changed: the first file of @k that is not what it was, as an absolute path;
 * g_free. NULL: all are. One that is missing has changed.
 * @image: what the head of the disk says now; the file that was @k->image is looked for
 * there.
 */
char *tt_base_changed(const TtBase *k, const char *disks, const char *image);
/*
 * tt_disk_is_replaced: is the disk @path, RUN/disks/NAME.tt, on another image than the one
 * it was made over (qemu-img rebase)? @image: what its head says now; NULL: none. The same
 * image at another place is none. False as well if nothing is known.
 */
bool tt_disk_is_replaced(const char *path, const char *image);
/* From now on they are to be as they are now; the same of @disk, if it is not NULL. */
void tt_base_look_again(TtBase *k, const char *disks, const char *image, const char *disk);
/* Is @disk what it was when it was committed? */
bool tt_base_has_disk(const TtBase *k, const char *disk);

#endif
