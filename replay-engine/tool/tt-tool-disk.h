/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The parts of `tt disk`: tt-tool-disk.c lists and describes, tt-tool-diskat.c finds the
 * disk and the version that are meant (tt-tool-diskrun.c those of a run),
 * tt-tool-diskbase.c looks at the image below, tt-tool-diskcommit.c writes into it,
 * tt-tool-diskout.c exports and serves, tt-tool-disknbd.c has qemu-nbd read a version for
 * us, tt-tool-diskdiff.c compares two, tt-tool-diskvolumes.c finds their file systems, and
 * tt-tool-diskfiles.c compares these (with libext2fs, through tt-tool-extio.c).
 */
#ifndef TT_TOOL_DISK_H
#define TT_TOOL_DISK_H

#include "tt-tool.h"
#include "block-tt/tt-blockmap.h"
#include "block-tt/tt-diskparts.h"
#include "run/tt-bases.h"
#include "run/tt-fullstate.h"

#include <sys/types.h>

/* ---- which disk, and how it was when ---- */

typedef struct ToolDisk {
    char *path;                 /* of the image with versions */
    char *run;                  /* whose disk it is; NULL: nobody's */
    TtBlockMap *map;
} ToolDisk;

/* The version of a disk that is meant. */
typedef struct ToolDiskAt {
    TtVersionId id;
    bool is_now;                /* as it is now; @id is 0 */
    bool has_pos;               /* of the full checkpoint that pinned it */
    uint64_t pos;
    const char *typed;          /* what the user gave */
    char *words;                /* for people; g_free */
} ToolDiskAt;

/* The disk that the second operand of @a names. False: said why. */
bool tool_disk_open(const ToolArgs *a, ToolDisk *d);
bool tool_disk_open_path(const char *path, ToolDisk *d);
void tool_disk_close(ToolDisk *d);
/* What --version or --at say; neither: now. Returns TOOL_FINE, or what the process ends
 * with, having said why. */
int tool_disk_at_option(const ToolArgs *a, const ToolDisk *d, ToolDiskAt *at);
/* The same for a word of the command line. */
int tool_disk_at(const ToolArgs *a, const ToolDisk *d, const char *text, ToolDiskAt *at);

/* ---- disks of a run ---- */

/* A version that a full checkpoint has pinned. */
typedef struct ToolDiskPin {
    uint32_t checkpoint;
    uint64_t pos;
    TtVersionId version;
    char *name;                 /* of the checkpoint, or "" */
    char *changed;              /* an image below that is another one now; or NULL */
} ToolDiskPin;

/* The image of @run's disk @wanted, or (NULL) of the only one. NULL: said why. g_free. */
char *tool_disk_of_run(const char *run, const char *wanted);
/* Those of all its disks; NULL: it has none, or one is missing; said why. */
GPtrArray *tool_disks_of_run(const char *run);
/* Of the full checkpoint @id; @desc leads into *@blob (g_free). False: it has none, or it
 * cannot be read. */
bool tool_full_desc(TtPageStore *store, TtNodeId id, void **blob, TtFullDesc *desc);
/* Of the run that @d is of, by position. Never NULL; what cannot be read is said. */
GArray *tool_disk_pins(const ToolDisk *d);
/* The version that the nearest full checkpoint at or before a place has. A number is the
 * id of one, if there is such a one, else a position. Returns a status. */
int tool_disk_at_place(const ToolDisk *d, const char *text, ToolDiskAt *at);

/* Are they whole, and do they have what checkpoints and a branch need? Adds sentences. */
void tool_check_disks(const char *run, const TtManifest *m, GPtrArray *problems);

/* Is each version of a disk there that the full checkpoint @id of @run has pinned? *@maps
 * (NULL at first) keeps what was read for the next one; g_hash_table_destroy. */
bool tool_full_has_disks(const char *run, TtPageStore *store, TtNodeId id,
                         GHashTable **maps);

/* ---- the image below a disk ---- */

/* Its path; NULL: there is none, or it is no file. g_free. */
char *tool_disk_image(const ToolDisk *d);
/* False: it is not where it was, which has been said. */
bool tool_disk_has_image(const ToolDisk *d);
/* RUN/disks of the disk of a run; NULL: it is nobody's. g_free. */
char *tool_disk_folder(const char *disk);
/* NAME of NAME.tt. g_free. */
char *tool_disk_name(const char *disk);
/* Says so, and returns true, if the disk is on another one than it was. */
bool tool_disk_note_replaced(const ToolDisk *d);
/* Says so if it is not what the run had of it. */
void tool_disk_note_changed(const ToolDisk *d);
/* Has a program of QEMU's opened this file? */
bool tool_disk_is_in_use(const char *path);
/* Has one opened it to write? */
bool tool_disk_is_written(const char *path);
/* RUN/disks, whose notes are read, changed, and written as a whole: until we end. False:
 * somebody else has it, which has been said. */
bool tool_disk_lock_folder(const char *folder);
/* How many bytes more the file @image takes at least when it gets all of @d. */
uint64_t tool_disk_needs_bytes(const ToolDisk *d, const char *image);

/* ---- QEMU's programs ---- */

/* What QEMU opens for it, as --image-opts takes it: read-only, and beside a VM that uses
 * the disk, unless it is the disk as it is now. NULL: said why. g_free. */
char *tool_disk_options(const ToolDisk *d, const ToolDiskAt *at);
/* Starts qemu-nbd for one client at a time or some, read-only, on the socket @listener.
 * -1: said why. It ends when its last client does (or never: @keeps), or we do. */
pid_t tool_disk_serve(const ToolArgs *a, const ToolDisk *d, const ToolDiskAt *at,
                      int listener, bool keeps);
/* Reads what it serves; to be closed. NULL: said why. */
TtIo *tool_disk_read(const ToolArgs *a, const ToolDisk *d, const ToolDiskAt *at);

/* @path: a run, or a disk. */
int tool_disk_commit(const ToolArgs *a, const char *path);
int tool_disk_export(const ToolArgs *a, const ToolDisk *d);
int tool_disk_serve_command(const ToolArgs *a, const ToolDisk *d);

/* ---- differences ---- */

/* Ranges of bytes, ascending, that do not touch. */
typedef struct ToolRange {
    uint64_t start, len;
} ToolRange;

int tool_disk_diff(const ToolArgs *a, const ToolDisk *d);
/* Which files differ between two disks, of which only @changed differs (of ToolRange)?
 * Prints that, as text or as the members of a JSON object, and looks at the disks in a
 * process of its own, so that nothing in them does harm here. @name: of the versions, as
 * the user gave them. Returns a status. */
int tool_disk_diff_files(TtIo *disk[2], const char *const name[2], const GArray *changed,
                         bool json);

#endif
