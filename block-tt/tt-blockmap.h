/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Block map: where each cluster of a disk with versions lies in its file.
 *
 * Model: the disk is an array of clusters. A table maps each to a host cluster (one
 * of the file), to zeros, or to the backing file. A version is the whole disk at one
 * moment; it holds only what changed in the table since its parent, old value and
 * new, so undo and redo share (TTVM 3.3). The head is the disk that is written now.
 * The first write of a cluster after a version goes to a free host cluster, in the
 * order in which writes come: random writes become sequential ones, and no version
 * is ever copied (Emulab 7.2.1 lost its speed to a snapshot that copies). Versions
 * form a tree (Emulab 8.5): after tt_blockmap_goto, the next version is a branch.
 *
 * It decides and remembers; it moves no byte of the disk. The caller asks where a range
 * lies, reads or writes there, and says that it is done. Changes to the file come as a
 * plan of writes and syncs. docs/reference/disk-format.rst is the format; rules H1,
 * J1... are its.
 *
 * Context: any thread, one at a time; the caller locks. No call blocks but those with
 * a TtIo. Between a begin and its end all other calls are allowed, unless the other
 * one says so: that is where a coroutine waits for its disk.
 * Units: offsets and lengths are bytes; "cluster" is one of the disk, "host" one of
 * the file. Ranges lie within the disk, or the call asserts.
 * Ownership: the caller that gets a TtBlockMap frees it. It keeps no TtIo.
 */
#ifndef TT_BLOCKMAP_H
#define TT_BLOCKMAP_H

#include "io/tt-io.h"

#define TT_BLOCKMAP_CLUSTER_BITS_MIN    12
#define TT_BLOCKMAP_CLUSTER_BITS_MAX    21
/* bench-blockmap, 2026-11-24: a random write of 4 KiB after a version writes 4, 8, 16 or
 * 32 times as much with clusters of 16 to 128 KiB; the table takes 4 bytes for each, and
 * opening 64 GiB, half of it written, took 260, 129, 62 or 26 ms. */
#define TT_BLOCKMAP_CLUSTER_BITS        15
#define TT_BLOCKMAP_CLUSTERS_MAX        (1u << 28)
#define TT_BLOCKMAP_HOSTS_MAX           (1u << 31)
#define TT_BLOCKMAP_VERSIONS_MAX        (1u << 20)
#define TT_BLOCKMAP_NAME_MAX            255     /* bytes of a version's name */
#define TT_BLOCKMAP_BACKING_MAX         1023    /* bytes of a file's name */
#define TT_BLOCKMAP_FORMAT_MAX          63      /* bytes of its format's name */
/* A reader that wants to know whether a file is one of ours looks at these. */
#define TT_BLOCKMAP_MAGIC               "TTVMDSK\n"
#define TT_BLOCKMAP_MAGIC_BYTES         8

typedef struct TtBlockMap TtBlockMap;
typedef uint32_t TtVersionId;           /* 0: the disk as it was made */

/* ---- making and opening ---- */

typedef struct TtBlockSpec {
    uint64_t size_bytes;                /* of the disk, a multiple of 512 */
    unsigned cluster_bits;              /* 0: tt_blockmap_cluster_bits_for */
    uint8_t uuid[16];
    const char *backing, *backing_format;       /* NULL: none */
} TtBlockSpec;

/* TT_BLOCKMAP_CLUSTER_BITS, for a disk of less than 8 TiB; more for a larger one, as few as
 * it needs, up to TT_BLOCKMAP_CLUSTER_BITS_MAX (512 TiB). */
unsigned tt_blockmap_cluster_bits_for(uint64_t size_bytes);
/*
 * tt_blockmap_open: read the map of an image
 * @io: borrowed for this call
 * TT_ERR_FORMAT, TT_ERR_VERSION, TT_ERR_LIMIT, TT_ERR_NOMEM, TT_ERR_IO. A journal that
 * is damaged (J2) opens all the same, and so does a file that was cut off (J7), see
 * tt_blockmap_damage. Somebody may be writing it: it is read again if its head changed
 * meanwhile, a few times. Cost: reads the file head and the journal; O(changes of all
 * versions).
 */
TtStatus tt_blockmap_open(TtIo *io, TtBlockMap **out, TtDiag *diag);
void tt_blockmap_free(TtBlockMap *bm);
/* A sentence, owned by @bm, if the journal is damaged or the file has been cut off: then
 * @bm must not be written; tt_blockmap_commit_begin asserts. NULL: it is not. */
const char *tt_blockmap_damage(const TtBlockMap *bm);

typedef struct TtDiskInfo {
    uint64_t size_bytes;
    uint32_t cluster_bytes;
    const char *backing, *backing_format;       /* NULL: none; owned by the map */
    uint8_t uuid[16];
    uint32_t n_versions;
    TtVersionId parent;                 /* of the head */
    uint64_t head_clusters;             /* changed in the head */
    uint64_t used_hosts;                /* needed: data, journal, file head */
    uint64_t kept_hosts;                /* data that versions have, and the head has not */
    uint64_t file_hosts;                /* up to the last one that was ever used */
    uint64_t journal_bytes;
} TtDiskInfo;

void tt_blockmap_info(const TtBlockMap *bm, TtDiskInfo *info);

/* ---- reading ---- */

typedef enum TtBlockKind {
    TT_BLOCK_BACKING,           /* in the backing file; zeros where there is none */
    TT_BLOCK_ZERO,
    TT_BLOCK_HOST,              /* in the image, from host_offset on */
    TT_BLOCK_LOST,              /* was there, but the file has been cut off: the disk is
                                   damaged, and this cannot be read */
} TtBlockKind;

typedef struct TtBlockRun {
    TtBlockKind kind;
    uint64_t host_offset;       /* TT_BLOCK_HOST, TT_BLOCK_LOST only */
    uint64_t len;               /* 1 to what was asked */
} TtBlockRun;

/* Where the head has the bytes from @offset on: the longest run of one kind, of at
 * most @len (not 0). O(clusters of the run), no allocation. */
void tt_blockmap_lookup(const TtBlockMap *bm, uint64_t offset, uint64_t len,
                        TtBlockRun *run);

/* Is it all as in the version that the head comes from? Then it stays to be found
 * there. O(clusters). */
bool tt_blockmap_is_kept(const TtBlockMap *bm, uint64_t offset, uint64_t len);

/*
 * A version's table of its own, to read it while the head is written. It pins the
 * version. NULL: no memory, or no such version. Cost: O(table + changes on the way).
 */
typedef struct TtBlockView TtBlockView;

TtBlockView *tt_blockmap_view_open(TtBlockMap *bm, TtVersionId id);
void tt_blockmap_view_close(TtBlockMap *bm, TtBlockView *view);
void tt_blockmap_view_lookup(const TtBlockView *view, uint64_t offset, uint64_t len,
                             TtBlockRun *run);

/* ---- writing ---- */

/*
 * One write of a range, from begin to end. If it is new, the caller writes whole
 * clusters: @fill_before bytes of what the disk has in front of @offset, the data, and
 * @fill_after bytes of what it has after; at @host_offset - @fill_before. Else it
 * writes the data in place.
 */
typedef struct TtBlockWrite {
    uint64_t offset, len;       /* of the data: the first part of what was asked */
    uint64_t host_offset;       /* for the byte at @offset */
    uint32_t fill_before, fill_after;
    bool is_new;
    uint32_t cluster, n, host;  /* private */
} TtBlockWrite;

/*
 * tt_blockmap_write_begin: where are @len bytes (not 0) from @offset on to be written?
 * Of two writes that overlap in a cluster and of which one is new, the second may
 * begin when the first has ended: the caller sees to that, as for writes that overlap
 * a discard. TT_ERR_LIMIT: the file has as many clusters as it may; TT_ERR_NOMEM.
 * O(clusters).
 */
TtStatus tt_blockmap_write_begin(TtBlockMap *bm, uint64_t offset, uint64_t len,
                                 TtBlockWrite *w, TtDiag *diag);
/* The data is where it should be (@ok: from now on the head has it), or not. Every
 * begin has its end, before a version is made or left. */
void tt_blockmap_write_end(TtBlockMap *bm, const TtBlockWrite *w, bool ok);
/* Whole clusters of the range become zeros; what is left of it at both ends is the
 * caller's to write: these lengths are returned in @before and @after (@before is
 * @len, @after 0, where there is no whole cluster). @has_below: the caller reads
 * TT_BLOCK_BACKING from a file that the file head may not name. TT_ERR_NOMEM: a part may
 * be done. */
TtStatus tt_blockmap_zero(TtBlockMap *bm, uint64_t offset, uint64_t len, bool has_below,
                          uint64_t *before, uint64_t *after, TtDiag *diag);
/* The guest needs the range no longer. Whole clusters that lie in the image read as
 * zeros afterwards; all others are left alone. Cannot fail. */
void tt_blockmap_discard(TtBlockMap *bm, uint64_t offset, uint64_t len);

/* ---- making it durable ---- */

typedef enum TtBlockStepKind {
    TT_BLOCK_WRITE,
    TT_BLOCK_SYNC,
    TT_BLOCK_GROW,              /* the file has @offset bytes at least, zeros at its end */
} TtBlockStepKind;

typedef struct TtBlockStep {
    TtBlockStepKind kind;
    uint64_t offset;
    const uint8_t *data;
    size_t len;                 /* a multiple of 512 */
} TtBlockStep;

#define TT_BLOCK_STEPS_MAX 7

/* Steps in order; each must have succeeded before the next begins. @after is written when
 * all have, and needs no sync: it says in another place that they have. If it fails, the
 * commit has succeeded all the same. Its length is 0: there is none. */
typedef struct TtBlockPlan {
    TtBlockStep step[TT_BLOCK_STEPS_MAX];
    unsigned n;
    TtBlockStep after;
} TtBlockPlan;

/*
 * tt_blockmap_commit_begin: what makes all that ended before this call durable
 * @plan: points into @bm until the end. TT_ERR_NOMEM, TT_ERR_LIMIT: nothing changed.
 * One commit at a time. O(changes since the last one), and now and then O(changes of
 * all versions): the journal is written anew (J4).
 */
TtStatus tt_blockmap_commit_begin(TtBlockMap *bm, TtBlockPlan *plan, TtDiag *diag);
/* @ok: all steps succeeded. Else the next commit has all of it again: whatever part
 * of this one reached the disk, every state there is one that was asked for. */
void tt_blockmap_commit_end(TtBlockMap *bm, bool ok);
/* Instead: step @step failed, and none after it was begun. True: it was a write for a journal
 * made anew before it had to be, and the next commit, which should follow at once, does
 * without: a host that is full takes a record where the segment for it is there already. */
bool tt_blockmap_commit_stop(TtBlockMap *bm, const TtBlockPlan *plan, unsigned step);
/*
 * tt_blockmap_format: what makes an empty file an image
 * @bytes: what @plan writes, g_malloc'ed.
 * TT_ERR_INVALID, TT_ERR_LIMIT: the sentence says what to change. O(1), and so are the
 * writes: 8 KiB of head, and 8 of the journal, of which the rest reads as zeros.
 */
TtStatus tt_blockmap_format(const TtBlockSpec *spec, TtBlockPlan *plan, uint8_t **bytes,
                            TtDiag *diag);
/* Both, with @io for the steps. */
TtStatus tt_blockmap_format_io(const TtBlockSpec *spec, TtIo *io, TtDiag *diag);
/* One step, with @io, which can write_at. */
TtStatus tt_block_step_io(const TtBlockStep *s, TtIo *io, TtDiag *diag);
/* Both, with @io for the steps. */
TtStatus tt_blockmap_commit(TtBlockMap *bm, TtIo *io, TtDiag *diag);
/* Another backing file (NULL: none, what lay there reads as zeros), from the next commit
 * on, which makes the journal anew. TT_ERR_LIMIT: a name is too long. */
TtStatus tt_blockmap_set_backing(TtBlockMap *bm, const char *backing,
                                 const char *format, TtDiag *diag);
/*
 * tt_blockmap_grow: a larger disk, from the next commit on, which makes the journal anew
 * All versions have that size then; what is new reads as the backing file, or as zeros. If
 * the disk did not end with a whole cluster, the rest of that one is undefined until it
 * is written. TT_ERR_INVALID: smaller, or not a multiple of 512; TT_ERR_LIMIT, TT_ERR_NOMEM.
 */
TtStatus tt_blockmap_grow(TtBlockMap *bm, uint64_t size_bytes, TtDiag *diag);
/* Back to @size_bytes, which the disk had before the last tt_blockmap_grow, from the next
 * commit on: no write may be under way in what was new, and no version made since. It is
 * as if it had never been there. Cannot fail. O(changes of the head). */
void tt_blockmap_grow_undo(TtBlockMap *bm, uint64_t size_bytes);
/* For tests: the journal is made anew when it has grown by this, 1 MiB otherwise. */
void tt_blockmap_set_anew_bytes(TtBlockMap *bm, uint32_t bytes);
/* Is there anything that a commit would write? */
bool tt_blockmap_is_dirty(const TtBlockMap *bm);
/*
 * Host clusters that are free since a commit, as one run of bytes at a time: the caller
 * may give their space back, and then releases the run, which is not used again
 * before. False: there is none.
 */
bool tt_blockmap_next_freed(TtBlockMap *bm, uint64_t *host_offset, uint64_t *len);
/* How many commits have freed some: what was read meanwhile from a place that was looked
 * up before may be another cluster's. */
uint64_t tt_blockmap_frees(const TtBlockMap *bm);
void tt_blockmap_release(TtBlockMap *bm, uint64_t host_offset, uint64_t len);

/* ---- versions ---- */

typedef struct TtVersionInfo {
    TtVersionId id, parent;
    uint64_t date_s, vm_clock_ns;
    uint32_t date_ns;
    uint64_t tag;               /* the maker's number, such as a position... */
    bool has_tag;               /* ...if it has one */
    uint64_t clusters;          /* changed since the parent */
    uint64_t lost;              /* of those that it needs: the file was cut off */
    char name[TT_BLOCKMAP_NAME_MAX + 1];
} TtVersionInfo;

/*
 * tt_blockmap_version_new: the head becomes a version, and the new head is equal to it
 * @want: date, clocks, tag and name of the version; the rest is ignored
 * TT_ERR_NOMEM, TT_ERR_LIMIT leave all unchanged. Durable with the next commit.
 * O(clusters changed in the head * log of them); no I/O.
 */
TtStatus tt_blockmap_version_new(TtBlockMap *bm, const TtVersionInfo *want,
                                 TtVersionId *id, TtDiag *diag);
/*
 * tt_blockmap_goto: the head becomes equal to version @id, and comes from it. What
 * changed in the head since its parent is gone: make a version first to keep it.
 * TT_ERR_INVALID: no such version. O(changes on the way); no I/O.
 */
TtStatus tt_blockmap_goto(TtBlockMap *bm, TtVersionId id, TtDiag *diag);
/*
 * tt_blockmap_version_delete: forget version @id. All others and the head stay what
 * they are; what only it needed is free with the next commit. Writes may be under way:
 * what they write to is the head's alone (I2), or nobody's yet.
 * TT_ERR_INVALID: no such version, or a view is open; TT_ERR_NOMEM. All unchanged.
 * O(versions + changes of it, and of those that come from it).
 */
TtStatus tt_blockmap_version_delete(TtBlockMap *bm, TtVersionId id, TtDiag *diag);
/* The @i'th version by id, from 0 on. False: there are not so many. */
bool tt_blockmap_version_at(const TtBlockMap *bm, uint32_t i, TtVersionInfo *info);
bool tt_blockmap_version_info(const TtBlockMap *bm, TtVersionId id,
                              TtVersionInfo *info);
/*
 * tt_blockmap_diff: the clusters in which versions @a and @b may differ, ascending
 * @n: how many. NULL: no memory, or (with @n 0) nothing differs or no such version.
 * g_free. O(changes on the way between them).
 */
uint32_t *tt_blockmap_diff(const TtBlockMap *bm, TtVersionId a, TtVersionId b,
                           size_t *n);

/* ---- checking ---- */

typedef struct TtBlockCheck {
    uint64_t errors;            /* host clusters named twice, counts that are wrong */
    uint64_t free_hosts;        /* of those up to the last one */
    uint64_t mapped_clusters, host_clusters;    /* of the head */
    uint64_t fragments;         /* host runs of the head */
    char text[TT_DIAG_TEXT_MAX];/* of the first error */
} TtBlockCheck;

/* Adds up all anew. TT_ERR_NOMEM. O(file + changes of all versions). */
TtStatus tt_blockmap_check(const TtBlockMap *bm, TtBlockCheck *check, TtDiag *diag);

#endif
