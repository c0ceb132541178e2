/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Shared by the files of this room. From the bottom up, none knows an upper one:
 *
 *   tt-blocktable    cluster -> value, in leaves; runs
 *   tt-blockalloc    host clusters: how often each is named, which is free
 *   tt-blockhead     the table of the head and what changed in it
 *   tt-blockversion  versions: make, go to, delete; views
 *   tt-blockops      operations of the journal (O1 to O5)
 *   tt-blockplan     records, segments, the journal anew: what a commit writes
 *   tt-blocksteps    carries that out
 *   tt-blockload     file head; carries the journal out
 *   tt-blockcut      what is lost in a file that was cut off
 *   tt-blockcheck    adds up, for qemu-img check and the tool
 *
 * Invariants:
 * I1. ref of a host cluster counts the changes (of versions and of the head) whose
 *     new value it is. It is busy if ref > 0, if it is metadata or reserved for a
 *     write, or if it is freed but a commit has to come first (J3).
 * I2. A cluster of the head may be written in place only if it is the head's own
 *     (changed since the parent), the ref of its host cluster is 1, and it was not
 *     more since the last commit: what the disk knows may name it for a version that
 *     is deleted only in memory.
 * I3. Each cluster whose value in any version differs from TT_V_BACKING has a leaf in
 *     the head's table, since that went through it; leaves are never freed. So
 *     going to a version allocates nothing.
 */
#ifndef TT_BLOCKMAP_INT_H
#define TT_BLOCKMAP_INT_H

#include "block-tt/tt-blockmap.h"

#include <assert.h>
#include <glib.h>
#include <string.h>

/* A value of the table: a host cluster, or one of these. Host cluster 0 is the file
 * head, so no data. */
#define TT_V_BACKING    0u
#define TT_V_ZERO       UINT32_MAX

#define TT_F_BLOCK_HEAD_BYTES   4096u
#define TT_F_BLOCK_RECORD_HEAD  24u
#define TT_F_BLOCK_ALIGN        512u
#define TT_F_BLOCK_MARK_ALIGN   4096u
#define TT_F_BLOCK_SEGMENT_MAX  (1u << 30)
#define TT_BLOCK_ANEW_BYTES     (1u << 20)

static inline bool tt_v_is_host(uint32_t v)
{
    return v != TT_V_BACKING && v != TT_V_ZERO;
}

/* ---- tt-blocktable ---- */

#define TT_LEAF_BITS    9
#define TT_LEAF         (1u << TT_LEAF_BITS)

typedef struct TtBlockLeaf {
    uint32_t value[TT_LEAF];
    uint64_t own[TT_LEAF / 64];         /* changed since the head's parent */
    uint64_t dirty[TT_LEAF / 64];       /* changed since the last O1 */
} TtBlockLeaf;

typedef struct TtBlockTable {
    uint32_t n_clusters, n_leaves;
    unsigned cluster_bits;
    uint32_t n_hosts;                   /* clusters with a host */
    uint64_t size_bytes;
    uint64_t file_bytes;                /* what lies behind is lost; UINT64_MAX: nothing */
    TtBlockLeaf **leaf;
} TtBlockTable;

bool tt_table_init(TtBlockTable *t, uint64_t size_bytes, unsigned cluster_bits);
void tt_table_cleanup(TtBlockTable *t);
bool tt_table_grow(TtBlockTable *t, uint64_t size_bytes);
/* What is behind must have no value. */
void tt_table_shrink(TtBlockTable *t, uint64_t size_bytes);
bool tt_table_copy(TtBlockTable *to, const TtBlockTable *from);
/* NULL: no memory. */
TtBlockLeaf *tt_table_leaf(TtBlockTable *t, uint32_t cluster);
void tt_table_lookup(const TtBlockTable *t, uint64_t offset, uint64_t len,
                     TtBlockRun *run);

static inline uint32_t tt_table_get(const TtBlockTable *t, uint32_t cluster)
{
    const TtBlockLeaf *l = t->leaf[cluster >> TT_LEAF_BITS];

    return l ? l->value[cluster & (TT_LEAF - 1)] : TT_V_BACKING;
}

static inline void tt_table_put(TtBlockTable *t, TtBlockLeaf *l, uint32_t i, uint32_t value)
{
    t->n_hosts += tt_v_is_host(value);
    t->n_hosts -= tt_v_is_host(l->value[i]);
    l->value[i] = value;
}

/* Is @v, which is the value of @cluster, lost? The last cluster may be short. */
static inline bool tt_table_is_lost(const TtBlockTable *t, uint32_t cluster, uint32_t v)
{
    uint64_t rest = t->size_bytes - ((uint64_t)cluster << t->cluster_bits);

    return tt_v_is_host(v) && ((uint64_t)v << t->cluster_bits) +
           MIN(1ull << t->cluster_bits, rest) > t->file_bytes;
}

static inline bool tt_bit(const uint64_t *bits, uint32_t i)
{
    return bits[i / 64] >> i % 64 & 1;
}

static inline void tt_bit_put(uint64_t *bits, uint32_t i, bool on)
{
    bits[i / 64] = (bits[i / 64] & ~(1ull << i % 64)) | (uint64_t)on << i % 64;
}

/* ---- tt-blockalloc ---- */

typedef struct TtHostRun {
    uint32_t host, n;
} TtHostRun;

typedef struct TtBlockAlloc {
    uint32_t *ref;              /* I1 */
    uint64_t *busy;             /* a bit each */
    uint64_t *held;             /* a bit each: not to be written in place (I2) */
    uint32_t n, room;           /* hosts known; for how many is memory */
    uint32_t n_free;            /* of them, not busy */
    uint32_t n_named;           /* with a ref */
    uint32_t cursor;            /* where the next run is looked for */
    uint32_t lost_from;         /* hosts that are lost as a whole: they are not counted */
    GArray *free_next;          /* TtHostRun: freed since the last commit began */
    GArray *free_now;           /* freed before: the commit that runs frees them */
    GArray *freed;              /* free, but not released yet */
    GArray *held_next, *held_now;       /* uint32_t: as with free_next, free_now */
    uint64_t frees;                     /* commits that freed some */
} TtBlockAlloc;

void tt_alloc_init(TtBlockAlloc *a);
void tt_alloc_cleanup(TtBlockAlloc *a);
/* Memory for hosts below @n. */
bool tt_alloc_reserve(TtBlockAlloc *a, uint64_t n);
/* Forgets the free ones at the end of the file. */
void tt_alloc_trim(TtBlockAlloc *a);
/* A run of 1 to @n free hosts, busy from now on; @n of them if @whole. TT_ERR_LIMIT,
 * TT_ERR_NOMEM. */
TtStatus tt_alloc_take(TtBlockAlloc *a, uint32_t n, bool whole, TtHostRun *run,
                       TtDiag *diag);
/* Marks as busy without a ref: metadata. False: one is busy already. */
bool tt_alloc_claim(TtBlockAlloc *a, uint32_t host, uint32_t n);
/* Back at once: nothing on the disk names it. */
void tt_alloc_untake(TtBlockAlloc *a, uint32_t host, uint32_t n);
/* Back when the next commit is durable. */
void tt_alloc_free_later(TtBlockAlloc *a, uint32_t host, uint32_t n);
void tt_alloc_ref(TtBlockAlloc *a, uint32_t v);         /* nothing, if no host */
void tt_alloc_unref(TtBlockAlloc *a, uint32_t v);
/* Hosts held since before the commit that ended are held no longer. */
void tt_alloc_let_go(TtBlockAlloc *a);
void tt_alloc_commit_begin(TtBlockAlloc *a);
void tt_alloc_commit_end(TtBlockAlloc *a, bool ok);

/* ---- versions ---- */

typedef struct TtBlockChange {
    uint32_t cluster, was, is;
} TtBlockChange;

typedef struct TtBlockVersion {
    TtVersionInfo info;                 /* clusters: from n */
    struct TtBlockVersion *parent;      /* NULL: the disk as it was made */
    TtBlockChange *change;              /* by cluster */
    size_t n;
    uint32_t pins;
    uint64_t lost;                      /* clusters that it needs, when it was loaded */
    bool mark;                          /* of a walk; false between calls */
} TtBlockVersion;

typedef struct TtHeadChange {
    uint32_t cluster, was;
} TtHeadChange;

/* ---- the journal ---- */

typedef struct TtBlockJournal {
    GArray *segments;                   /* TtHostRun: in use */
    uint32_t at;                        /* byte in the last one: the next record */
    uint32_t number;                    /* of the next record */
    uint64_t seed;                      /* checksum of the record before */
    uint64_t generation;
    uint64_t bytes;                     /* written since the journal was made anew */
    uint64_t anew_bytes;                /* that it had then */
    bool must_be_anew;                  /* the file head is, or may be, another one */
    bool is_marked;                     /* both copies of the head are this one, and what
                                           has reached the disk has a mark (H1, J6) */
    bool is_in_other_copy;              /* the copy that counts, and no other, is not the
                                           one of its generation */
} TtBlockJournal;

/* What the commit that runs does when it ends well. */
typedef struct TtBlockCommit {
    bool runs, is_anew, has_record;
    bool is_early;                      /* a record would have done */
    bool was_needed;                    /* the journal had to be made anew before, too */
    unsigned named_at;                  /* step from which on the disk may name @fresh */
    size_t ops_len;                     /* of bm->ops that it wrote */
    TtHostRun fresh;                    /* segment that it began; n 0: none */
    TtBlockJournal after;               /* segments: unused */
    uint8_t *bytes, *link, *head;       /* of its steps */
    uint8_t mark[TT_F_BLOCK_ALIGN];
} TtBlockCommit;

struct TtBlockMap {
    TtBlockTable table;                 /* of the head */
    TtBlockAlloc alloc;
    GArray *changed;                    /* TtHeadChange: of the head, unsorted */
    GArray *dirty;                      /* uint32_t: clusters for the next O1 */
    GByteArray *ops;                    /* operations that no commit has written */
    GPtrArray *versions;                /* TtBlockVersion, by id */
    TtBlockVersion *parent;             /* of the head */
    TtVersionId last_id;
    TtBlockJournal journal;
    TtBlockCommit commit;
    char *backing, *backing_format, *damage;
    uint8_t uuid[16];
    uint64_t loaded_bytes;              /* of segments */
    bool is_loading;                    /* what happens stands in the journal */
    bool names_lost;                    /* a record did, if only for a while */
    bool is_cut;                        /* something is lost, or a part of the journal */
    uint64_t needs_bytes;               /* that the file has to have before the next record
                                         * (J3); 0: it has them */
    uint32_t writes;                    /* between begin and end */
    bool has_fill;                      /* a new cluster since the last commit has bytes
                                           that were copied, or what that commit wrote at
                                           its end has to come first (J3) */
    uint32_t anew_bytes;                /* growth after which J4 is due, at least */
};

static inline uint64_t tt_host_offset(const TtBlockMap *bm, uint32_t host)
{
    return (uint64_t)host << bm->table.cluster_bits;
}

static inline uint32_t tt_head_hosts(unsigned cluster_bits)
{
    return (2 * TT_F_BLOCK_HEAD_BYTES + (1u << cluster_bits) - 1) >> cluster_bits;
}

/* tt-blockhead: changes one cluster of the head. False: no memory. */
bool tt_head_set(TtBlockMap *bm, uint32_t cluster, uint32_t value);
/* Clusters from @first on are as in the head's parent, and not dirty. */
void tt_head_cut(TtBlockMap *bm, uint32_t first);
/* Nothing is own any more; @changed becomes empty. */
void tt_head_disown(TtBlockMap *bm);
void tt_head_sort(TtBlockMap *bm);

/* tt-blockversion */
TtBlockVersion *tt_version_find(const TtBlockMap *bm, TtVersionId id);
void tt_version_free(TtBlockVersion *v);
/* With the id that is given; else as tt_blockmap_version_new. */
TtStatus tt_version_make(TtBlockMap *bm, const TtVersionInfo *info, TtDiag *diag);

/* tt-blockops: append to @ops. */
void tt_ops_map(GByteArray *ops, const TtBlockMap *bm, const uint32_t *clusters,
                size_t n);
void tt_ops_dirty(TtBlockMap *bm);      /* O1 for what is dirty, into bm->ops */
void tt_ops_version(GByteArray *ops, const TtVersionInfo *info);
void tt_ops_id(GByteArray *ops, unsigned type, TtVersionId id);
void tt_ops_next(GByteArray *ops, TtHostRun segment);
/* The whole state: all versions, and the head. */
void tt_ops_state(GByteArray *ops, const TtBlockMap *bm);
/* Carries out @len bytes of operations; @next gets O5 (n 0: there is none). */
TtStatus tt_ops_apply(TtBlockMap *bm, const uint8_t *p, size_t len, TtHostRun *next,
                      TtDiag *diag);

/* A single O1 that names what is lost: how many bytes the file has to have for it. 0: it
 * is none. */
uint64_t tt_ops_map_needs(const TtBlockMap *bm, const uint8_t *p, size_t len);

/* tt-blockformat: can a disk have that size? */
TtStatus tt_block_check_size(uint64_t bytes, unsigned cluster_bits, TtDiag *diag);

/* tt-blockcut: when all is loaded. @is_short: the file has not all of its journal. */
void tt_cut_find(TtBlockMap *bm, bool is_short);

/* tt-blockplan: the file head of @generation, whose journal begins at @first. */
void tt_block_head_put(uint8_t *bytes, const TtBlockMap *bm, uint64_t generation,
                       TtHostRun first);
uint64_t tt_block_first_seed(const uint8_t *uuid, uint64_t generation);
/* How the segment begins that this head names: a record without operations, and its mark
 * (J5, J6). g_free. */
uint8_t *tt_block_first_segment(const uint8_t *uuid, uint64_t generation, size_t *len);

#endif
