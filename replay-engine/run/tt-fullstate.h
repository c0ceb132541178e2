/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Full state: the parts that a checkpoint needs besides CPU and RAM so that a VM can
 * really run on from it: the state of the devices, RAM that no guest sees, and a
 * description of the machine and of its disks. It is the last part of a checkpoint
 * state (run/tt-cpstate.h); docs/reference/checkpoint-state.rst has the bytes.
 *
 * Context: any thread. No I/O. Bytes from a file may be hostile: every length
 * is bounded before it is used.
 */
#ifndef TT_FULLSTATE_H
#define TT_FULLSTATE_H

#include "io/tt-base.h"
#include "run/tt-cpstate.h"

#define TT_FULL_NAME_MAX    255
#define TT_FULL_TEXT_MAX    (1u << 20)      /* bytes of a description */
#define TT_FULL_RAW_MAX     (1ull << 32)    /* bytes of a part, unpacked */
#define TT_FULL_PARTS_MAX   2048
#define TT_FULL_DISKS_MAX   256
#define TT_FULL_FILES_MAX   256             /* of a disk's chain of images */

/* ---- parts ---- */

enum {
    TT_FULL_TEXT = 1,           /* the description */
    TT_FULL_DEVICES = 2,        /* QEMU's own device state */
    TT_FULL_BLOCK = 3,          /* contents of the RAM block @name */
};

typedef struct TtFullWriter TtFullWriter;

TtFullWriter *tt_full_writer_new(void);
void tt_full_writer_free(TtFullWriter *w);
/* Compresses @bytes. TT_ERR_LIMIT when all of it would not fit a checkpoint;
 * TT_ERR_NOMEM. @name: at most TT_FULL_NAME_MAX bytes, or NULL. */
TtStatus tt_full_put(TtFullWriter *w, uint32_t kind, const char *name,
                     const void *bytes, size_t len, TtDiag *diag);
/* Valid until the writer is freed or more is put. */
TtBytes tt_full_bytes(const TtFullWriter *w);

typedef struct TtFullPart {
    uint32_t kind;
    char name[TT_FULL_NAME_MAX + 1];
    uint64_t raw_bytes;
    TtBytes stored;             /* points into the bytes given */
} TtFullPart;

/* Takes the next part off @rest, which is the whole at first. TT_OK; TT_END:
 * there is none; TT_ERR_FORMAT, _VERSION with one sentence. *n counts them,
 * from 0. */
TtStatus tt_full_next(TtBytes *rest, unsigned *n, TtFullPart *part,
                      TtDiag *diag);
/* @out has room for part->raw_bytes. */
TtStatus tt_full_unpack(const TtFullPart *part, void *out, TtDiag *diag);

/* ---- the description ---- */

typedef struct TtFullFile {     /* one of those that hold a disk's contents */
    char *path;                 /* absolute, or relative to the run */
    uint64_t size_bytes, mtime_ns;
} TtFullFile;

typedef struct TtFullDisk {
    char *device;               /* where the guest has it: for people, and to
                                   compare media that cannot be written */
    int64_t drive;              /* the n-th -drive of the command line, from 0;
                                   or -1 */
    char *node;                 /* -1: the -blockdev of this name */
    bool is_writable;
    char *image;                /* path as above or QEMU's json:; "": none */
    char *format;
    uint32_t version;           /* of the disk with versions @image; 0: it is no such */
    uint64_t size_bytes;
    unsigned n_files;
    TtFullFile *files;
} TtFullDisk;

typedef struct TtFullDesc {
    char *name;                 /* the user's, or "" */
    char *machine, *cpu;        /* type names */
    uint64_t ram_bytes;
    unsigned n_disks;
    TtFullDisk *disks;
} TtFullDesc;

/* g_malloc'ed text. */
char *tt_fulldesc_text(const TtFullDesc *d);
/* @d is filled on TT_OK and empty otherwise. TT_ERR_FORMAT, _LIMIT. */
TtStatus tt_fulldesc_parse(const char *text, size_t len, TtFullDesc *d,
                           TtDiag *diag);
/* The description among the parts of @full. */
TtStatus tt_fulldesc_find(TtBytes full, TtFullDesc *d, TtDiag *diag);
void tt_fulldesc_cleanup(TtFullDesc *d);

#endif
