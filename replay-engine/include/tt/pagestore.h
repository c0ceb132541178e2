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
 * Context: one thread at a time. No I/O. Memory: all versions, in memory, with
 * a byte count (the on-disk store comes with the next format).
 */
#ifndef TT_PAGESTORE_H
#define TT_PAGESTORE_H

#include "tt/base.h"

#define TT_PAGE_BYTES      4096u
#define TT_PAGES_MAX       (1ull << 28)     /* 1 TiB of guest RAM */

typedef struct TtPageStore TtPageStore;
typedef uint32_t TtNodeId;                  /* never reused; 0 is "none" */

/* Fetches page @page of the current RAM; the pointer is read at once (and
 * must not change meanwhile). Called in ascending order of pages. */
typedef const void *(*TtPageFetch)(void *opaque, uint64_t page);
/* Puts one page into the current RAM; NULL @bytes means all zero. Called in
 * ascending order of pages. Must not call the store. */
typedef void (*TtPagePut)(void *opaque, uint64_t page, const void *bytes);

TtPageStore *tt_pagestore_new(void);
void tt_pagestore_free(TtPageStore *ps);

/*
 * tt_pagestore_add: make a node of the current RAM at @pos
 * @base: node the current RAM comes from; 0 for the first node of the store
 * @dirty: page numbers changed since @base, ascending, no duplicates (for the
 *         first node: all pages that are not zero)
 * The new node need not follow @base directly: other nodes may lie between (the
 * current RAM went forward from @base past them), and others may follow. The
 * caller may go on with base = the new node and nothing dirty, or as before.
 * Returns TT_ERR_INVALID when a node at @pos exists, @pos <= base's, @base does
 * not exist (0 while there are nodes), or a page is not below TT_PAGES_MAX;
 * TT_ERR_NOMEM leaves all unchanged.
 * Cost: O(dirty + pages of the nodes between and of the node that follows).
 */
TtStatus tt_pagestore_add(TtPageStore *ps, uint64_t pos, TtNodeId base,
                          const uint64_t *dirty, size_t n_dirty,
                          TtPageFetch fetch, void *opaque, TtNodeId *out);
/*
 * tt_pagestore_restore: make the current RAM equal node @target
 * @base, @dirty: as above (where the current RAM comes from)
 * Every differing page is put exactly once; a page whose version at @base and
 * at @target is the same, and that is not dirty, is not touched. @n_put (may be
 * NULL) says how many. Afterwards base = @target and nothing is dirty.
 * TT_ERR_NOMEM, TT_ERR_INVALID (no such node): no page was put.
 * Cost: O(dirty + pages of the nodes between).
 */
TtStatus tt_pagestore_restore(TtPageStore *ps, TtNodeId target, TtNodeId base,
                              const uint64_t *dirty, size_t n_dirty,
                              TtPagePut put, void *opaque, size_t *n_put);
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
 * that left the old content. (For the first node: is it other than zero?)
 * O(log pages of the node).
 */
bool tt_pagestore_changed(TtPageStore *ps, TtNodeId id, uint64_t page);
/* Pages in the delta between @id's predecessor and @id. */
uint64_t tt_pagestore_node_pages(TtPageStore *ps, TtNodeId id);
/* Memory in use, for a cap: shrinks at once when a node is deleted that others
 * do not share. (The process may hold more for a while: pages that were freed
 * are used again first, and go back to the system in slabs of 2 MiB.) */
uint64_t tt_pagestore_bytes(const TtPageStore *ps);

#endif
