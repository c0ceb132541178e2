/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Page store: RAM of many checkpoints as page versions that they share.
 *
 * Model: RAM is n_pages pages of TT_PAGE_BYTES, numbered from 0 over all blocks
 * (glue does the numbering). A node is the RAM of one checkpoint; nodes are
 * ordered by position. A node stores only the pages that changed since its
 * predecessor, so undo (backward) and redo (forward) share every version
 * (TTVM 3.3). Equal pages are kept once (XXH3-128, compared byte by byte);
 * zero pages cost nothing. "Current RAM" is outside: the caller knows from
 * which node it comes (the base) and which pages it dirtied since.
 *
 * History is one line: two visits to a position find the same RAM. Contents
 * stay exact even if that is not so (a debugger wrote into the past); only
 * tt_pagestore_changed relies on it.
 *
 * A store may have two files (docs/reference/page-store-format.rst): then nodes
 * are checkpoints that outlive the process, and page versions that were written
 * leave memory when there are too many. tt_pagestore_flush writes; until then,
 * all is in memory. Without files there is no I/O at all.
 *
 * Context: one thread at a time; a TtPageBatch may be filled by another thread
 * than the one that adds it. May block, with files: flush, restore, blob, and
 * add (which compares pages that have equal hashes).
 */
#ifndef TT_PAGESTORE_H
#define TT_PAGESTORE_H

#include "pages/tt-page.h"

typedef struct TtPageStore TtPageStore;

TtPageStore *tt_pagestore_new(void);
void tt_pagestore_free(TtPageStore *ps);

/*
 * tt_pagestore_add: make a node of the current RAM at @pos
 * @base: node the current RAM comes from; 0 for a node in front of all others
 * @dirty: page numbers changed since @base, ascending, no duplicates (for the
 *         first node: all pages that are not zero). When a node is put in front
 *         of the first one later, a page that is zero in both counts as not
 *         written between them
 * The new node need not follow @base directly: other nodes may lie between (the
 * current RAM went forward from @base past them), and others may follow. The
 * caller may go on with base = the new node and nothing dirty, or as before.
 * Returns TT_ERR_INVALID when a node at @pos exists, @pos <= base's, @base does
 * not exist (or is 0, and there is a node before @pos), or a page is not below
 * TT_PAGES_MAX; TT_ERR_NOMEM leaves all unchanged, and so does TT_ERR_LIMIT: too
 * many nodes.
 * Cost: O(dirty + pages of the nodes between and of the node that follows).
 */
TtStatus tt_pagestore_add(TtPageStore *ps, uint64_t pos, TtNodeId base,
                          const uint64_t *dirty, size_t n_dirty,
                          TtPageFetch fetch, void *opaque, TtNodeId *out);
/*
 * tt_pagestore_restore: make the current RAM equal node @target
 * @base, @dirty: as above (where the current RAM comes from); here @base may
 *         be 0: RAM is all zero but for the dirty pages
 * Every differing page is put exactly once; a page whose version at @base and
 * at @target is the same, and that is not dirty, is not touched. @n_put (may be
 * NULL) says how many. Afterwards base = @target and nothing is dirty.
 * TT_ERR_INVALID (no such node): no page was put. TT_ERR_NOMEM, and with files an
 * error of reading (TT_ERR_IO, TT_ERR_FORMAT; tt_pagestore_read_error says more):
 * the first *@n_put of the pages were put, and are now dirty against @base. Short
 * memory puts none, unless it is an origin that is short of it.
 * Cost: O(dirty + pages of the nodes between).
 */
TtStatus tt_pagestore_restore(TtPageStore *ps, TtNodeId target, TtNodeId base,
                              const uint64_t *dirty, size_t n_dirty,
                              TtPagePut put, void *opaque, size_t *n_put);
/*
 * tt_pagestore_read: look at pages @first to @first + @n - 1 of node @target
 * Those that are not zero are put, ascending. TT_ERR_INVALID (no such node),
 * TT_ERR_NOMEM, errors of reading as above. Cost: O(pages of the nodes up to
 * @target).
 */
TtStatus tt_pagestore_read(TtPageStore *ps, TtNodeId target, uint64_t first,
                           uint64_t n, TtPagePut put, void *opaque);
/*
 * tt_pagestore_read_since: the pages that were written between @base (0: RAM that is all
 * zero) and @target, as they are at @target; zero ones are put, too
 * Errors as above. Cost: O(pages of the nodes between); reads no other page.
 */
TtStatus tt_pagestore_read_since(TtPageStore *ps, TtNodeId base, TtNodeId target,
                                 TtPagePut put, void *opaque);
/*
 * tt_pagestore_compare: puts those of the pages below @n that are other at @target than
 * those of @here, ascending, as they are at @target
 * Compared by the hash that the store has of each: only pages that are put are read. Errors
 * as above. Cost: O(pages of the nodes up to @target), a hash of each page that is not zero.
 */
TtStatus tt_pagestore_compare(TtPageStore *ps, TtNodeId target, uint64_t n,
                              TtPageFetch here, TtPagePut put, void *opaque);
/*
 * tt_pagestore_delete: delete a node; its versions move on to its successor
 * where that needs them
 * Every other node stays exact. @id must exist. The current RAM may come from
 * @id: then the caller must first ask tt_pagestore_rebase. Cannot fail: with no
 * memory for the merged page list the list stays apart until there is some.
 * Cost: O(pages of the node and of its successor); touches no page content.
 */
void tt_pagestore_delete(TtPageStore *ps, TtNodeId id);
/*
 * tt_pagestore_rebase: pages in which node @from and node @to differ, and any
 * others written between them, ascending (g_malloc'ed array, caller frees with
 * g_free): adding them to the dirty set lets the caller say base = @to instead
 * of @from. Both must exist. NULL only when memory is short. To go on to add
 * nodes, @to must lie before the current position.
 */
uint64_t *tt_pagestore_rebase(TtPageStore *ps, TtNodeId from, TtNodeId to,
                              size_t *n);
/*
 * tt_pagestore_changed: may @page have been written between @id's predecessor
 * and @id?
 * False is certain, so that a search may skip the interval: not even a write
 * that left the old content. (For the first node: is it other than zero? One that was
 * the first when it was added lists no more than that.)
 * O(log pages of the node).
 */
bool tt_pagestore_changed(TtPageStore *ps, TtNodeId id, uint64_t page);
/* A position from which on, up to @pos, no list of a node has @page; @pos itself if there
 * is none. O(nodes * log pages of one). */
uint64_t tt_pagestore_unwritten_since(TtPageStore *ps, uint64_t page, uint64_t pos);
/* Pages in the delta between @id's predecessor and @id. */
uint64_t tt_pagestore_node_pages(TtPageStore *ps, TtNodeId id);
/*
 * tt_pagestore_pack: compress pages in memory until those that are there
 * uncompressed alone take @plain bytes at most; then all that are there
 * uncompressed, besides, @all
 * For stores whose additions stay in memory (no files, or read_only): a writer's
 * must not be packed. Some microseconds a page.
 */
void tt_pagestore_pack(TtPageStore *ps, uint64_t plain, uint64_t all);
/* Memory in use, for a cap: shrinks at once when a node is deleted that others
 * do not share. (The process may hold more for a while: pages that were freed
 * are used again first, and go back to the system in slabs of 2 MiB.) */
uint64_t tt_pagestore_bytes(const TtPageStore *ps);
/* For tests: the @nth allocation from now on fails, and all after it, or that one
 * alone; 0: none does. */
void tt_pagestore_fail_alloc(TtPageStore *ps, uint64_t nth);
void tt_pagestore_fail_one_alloc(TtPageStore *ps, uint64_t nth);

/* ---- checkpoints: what a node has besides RAM ---- */

enum {
    TT_CHECKPOINT_PINNED = 1,   /* never thinned */
    TT_CHECKPOINT_FULL = 2,     /* the blob has device state, too */
};

/* tt_pagestore_add with more about the node. @meta may be NULL. A blob that is
 * too long is TT_ERR_LIMIT. */
TtStatus tt_pagestore_add_checkpoint(TtPageStore *ps, uint64_t pos,
                                     TtNodeId base, const uint64_t *dirty,
                                     size_t n_dirty, TtPageFetch fetch,
                                     void *opaque,
                                     const TtCheckpointMeta *meta,
                                     TtNodeId *out);

typedef struct TtCheckpointInfo {
    TtNodeId id;
    uint32_t flags;
    uint64_t pos, host_ns;
    uint64_t n_pages;           /* in the delta to its predecessor */
    uint64_t stored_bytes;      /* on disk, of the versions in that delta; those
                                   that others share are counted here, too */
    uint64_t blob_bytes;
    bool is_flushed;            /* its record is in the file */
} TtCheckpointInfo;

size_t tt_pagestore_count(const TtPageStore *ps);
/* Fills the infos of all nodes, by position; @infos has room for @n. Returns
 * how many it filled. stored_bytes costs O(pages). */
size_t tt_pagestore_list(const TtPageStore *ps, TtCheckpointInfo *infos,
                         size_t n);
/* False: no such node. */
bool tt_pagestore_info(const TtPageStore *ps, TtNodeId id,
                       TtCheckpointInfo *info);
/* @id must exist. */
void tt_pagestore_set_flags(TtPageStore *ps, TtNodeId id, uint32_t flags);
/* The blob of @id, which must exist: *@bytes is the caller's, g_free; NULL when
 * there is none. TT_ERR_IO, TT_ERR_FORMAT, TT_ERR_NOMEM with a sentence. */
TtStatus tt_pagestore_blob(TtPageStore *ps, TtNodeId id, void **bytes,
                           size_t *len, TtDiag *diag);

/* ---- staging: copies of dirty pages, taken while the VM stands ---- */

typedef struct TtPageBatch TtPageBatch;

/* Room for @cap pages, touched now, so that filling takes no page faults. NULL:
 * memory is short. */
TtPageBatch *tt_pagebatch_new(size_t cap);
void tt_pagebatch_free(TtPageBatch *b);
void tt_pagebatch_clear(TtPageBatch *b);
/* Copies a page; pages ascend. False: full, or not ascending. O(1): a memcpy. */
bool tt_pagebatch_put(TtPageBatch *b, uint64_t page, const void *bytes);
size_t tt_pagebatch_count(const TtPageBatch *b);
size_t tt_pagebatch_room(const TtPageBatch *b);
/* The numbers, ascending; valid until the batch is cleared or freed. */
const uint64_t *tt_pagebatch_pages(const TtPageBatch *b);
/* tt_pagestore_add_checkpoint of the pages in @b, which stays as it is. */
TtStatus tt_pagestore_add_batch(TtPageStore *ps, uint64_t pos, TtNodeId base,
                                const TtPageBatch *b,
                                const TtCheckpointMeta *meta, TtNodeId *out);

/* ---- files ---- */

/* Both files are empty. Heads are written. */
TtStatus tt_pagestore_create(const TtPageStoreOptions *opt, TtPageStore **out,
                             TtDiag *diag);
/*
 * tt_pagestore_open: the store as the files say, up to where a writer was
 * killed; unless read_only, what is after that is cut off
 * TT_ERR_FORMAT: damaged, foreign, or of another run; TT_ERR_VERSION;
 * TT_ERR_LIMIT: more work than any run of ours makes; TT_ERR_NOMEM; TT_ERR_IO.
 * Reads all tables and the whole journal, no page.
 */
TtStatus tt_pagestore_open(const TtPageStoreOptions *opt, TtPageStore **out,
                           TtDiag *diag);
/*
 * tt_pagestore_flush: write what was done since the last flush, give space back
 * A failure (TT_ERR_NOSPACE, TT_ERR_IO, TT_ERR_NOMEM) leaves the store as good as
 * before, in memory; the files hold what earlier flushes wrote. The next flush
 * tries to bring them up to date as a whole; as long as that fails, too, it
 * returns TT_END and says nothing. TT_OK without files, or with read_only ones.
 * Cost: compression and writing of new versions; now and then a rewrite of the
 * journal, and copies of up to as many versions as are dead.
 */
TtStatus tt_pagestore_flush(TtPageStore *ps, TtDiag *diag);
/*
 * With a cap, the files are below it at any time, also while one is made anew:
 * so what lives can have less than half of it. A flush for which there is no room
 * returns TT_ERR_LIMIT; the same holds as after other failures, and it works
 * again when the checkpoint that did not fit is deleted. So before an add:
 *
 * - wants_thinning: with @bytes more (a guess), does so much live that something
 *   should be deleted first, and flushed?
 * - make_room: makes the pages anew, without what is dead, if @bytes more could
 *   not be written otherwise. A failure costs space only. Cost: reads and writes
 *   all that lives, a sync.
 */
bool tt_pagestore_wants_thinning(const TtPageStore *ps, uint64_t bytes);
TtStatus tt_pagestore_make_room(TtPageStore *ps, uint64_t bytes,
                                TtDiag *diag);
/* Flushed data then survives a power cut. TT_OK without files. */
TtStatus tt_pagestore_sync(TtPageStore *ps, TtDiag *diag);
/* For a store that lives long, without a cap: makes the pages anew when the file is
 * holes for the most part, and @least bytes longer than what is to be expected. A
 * failure costs space only. Cost: see make_room. */
void tt_pagestore_renew(TtPageStore *ps, uint64_t least);
/*
 * tt_pagestore_find: a page by its hash, for a TtPageOrigin over this store
 * TT_END: no node has it. Errors of reading as above. O(1).
 */
TtStatus tt_pagestore_find(TtPageStore *ps, const uint64_t hash[2], void *to,
                           TtDiag *diag);
/* The last error of reading a page; NULL: there was none. */
const TtDiag *tt_pagestore_read_error(const TtPageStore *ps);

/* The loss at the end of a file (@which: 0 pages, 1 checkpoints) although no writer was
 * cut off there, or of a table of pages; NULL: nothing. Found when the store was
 * opened; checkpoints after it are not there. */
const TtDiag *tt_pagestore_damage(const TtPageStore *ps, unsigned which);
/*
 * tt_pagestore_verify: read everything that the checkpoints need
 * @problem is called for each checkpoint, by position, of which @n_pages cannot
 * be read, @first_page the lowest; @why is about one of them.
 * Returns how many page versions cannot be read. Cost: reads and hashes all that
 * lives, some 300 MB of it a second.
 */
typedef void (*TtPageProblem)(void *opaque, TtNodeId id, uint64_t pos,
                              uint64_t n_pages, uint64_t first_page,
                              const TtDiag *why);
uint64_t tt_pagestore_verify(TtPageStore *ps, TtPageProblem problem,
                             void *opaque);
/*
 * tt_pagestore_export: a journal of the checkpoints as they are, into @to, which
 * is empty and stays the caller's; with a copy of the pages it is a store
 * @strip: NULL, or changes what goes along with a checkpoint: its blob
 * (g_malloc'ed) and its flags. The store was opened read-only, and nothing was
 * changed in it. TT_ERR_* of reading and writing.
 */
TtStatus tt_pagestore_export(TtPageStore *ps, TtIo *to,
                             const uint8_t uuid[16], TtPageStrip strip,
                             TtDiag *diag);

TtPageStoreStats tt_pagestore_stats(const TtPageStore *ps);

#endif
