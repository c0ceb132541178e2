/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Guest RAM: its blocks, its map, and the pages that were written.
 *
 * Context, unless said otherwise: the BQL is held.
 */
#ifndef TT_MEMORY_H
#define TT_MEMORY_H

#include "hw-tt/memory/tt-block.h"
#include "log/tt-log.h"
#include "run/tt-cpstate.h"

unsigned tt_memory_n_blocks(void);
TtBlock *tt_memory_block(unsigned index);
uint64_t tt_memory_n_pages(void);
/* The block that @host lies in, and where; UINT32_MAX: in none of the run's. */
uint32_t tt_memory_locate(void *host, uint64_t *offset);
/* The number of a page of RAM, a ram_addr_t, in the page store; UINT64_MAX: it is in none of
 * the run's blocks. */
uint64_t tt_memory_page_of(uint64_t ram_addr);
void tt_memory_record_start(CPUState *cpu);     /* logs map and contents */
void tt_memory_record_stop(void);
uint64_t tt_memory_digest(void);        /* 0.1 ms per MiB; holds the token */
/* Replay: carry out one event. False: the log is inconsistent, *errp. */
bool tt_memory_apply(const TtEvent *ev, Error **errp);
/* Checkpoints: the map as two event payloads, and how many blocks there are. */
typedef struct TtMapState {
    GByteArray *sections[2];
    unsigned n_blocks;
} TtMapState;
void tt_memory_map_save(TtMapState *ms);
void tt_memory_map_restore(const TtMapState *ms);
void tt_memory_map_free(TtMapState *ms);
/* Recording: has the map changed since the last call? */
bool tt_memory_map_has_changed(void);
/* How often the memory map was changed, or built anew, in this process. */
uint64_t tt_memory_map_changes(void);
/* For a stored checkpoint: names and sizes of the blocks, as bytes. */
GByteArray *tt_memory_blocks_save(void);
/* Map and blocks of one; blocks that are not there yet are made. The bytes may be
 * hostile. */
bool tt_memory_map_load(TtMapState *ms, const TtCpState *s, Error **errp);
/* Pages written since the last call (or since start), ascending. */
uint64_t *tt_memory_collect_dirty(size_t *n);
/* The same for another one who collects: since the last call of either; the next
 * tt_memory_collect_dirty returns these pages, too. */
uint64_t *tt_memory_list_dirty(size_t *n);
size_t tt_memory_count_dirty(void);     /* collects none; 1 us per 100 MiB */
void tt_memory_mark_dirty(uint64_t page);
/* Nobody watched until now: dirty is what may be other than zero. */
void tt_memory_held_dirty(void);
const void *tt_memory_page(void *opaque, uint64_t page);
void tt_memory_put_page(void *opaque, uint64_t page, const void *bytes);

/* The vCPU sees the VM's own memory again; that of the past is given back. */
void tt_memory_leave_past(void);

/* Recording: is a page that a device wrote as on a disk? */
typedef bool TtMemoryFindOnDisk(const uint8_t *page, TtDiskRef *ref);
void tt_memory_on_disk(TtMemoryFindOnDisk *find);      /* NULL: none is */

/*
 * Recording: are bytes that a device wrote those of a frame that arrives? *@at: where they
 * begin; @ev: the event that names them, but for block and offset, at most
 * TT_LOG_DATA_MAX of them. Its data is valid until the next call.
 */
typedef bool TtMemoryFindInFrame(const uint8_t *written, uint64_t len, uint64_t *at,
                                 TtEvent *ev);
void tt_memory_in_frame(TtMemoryFindInFrame *find);

void tt_memory_init(void);      /* once, at start */
/* Recording, a block comes in: its pages that are not as in the parent's
 * checkpoint (a bitmap, g_free); NULL: it has no such block, or this is no branch. */
typedef unsigned long *TtMemoryCompare(const TtBlock *b);
void tt_memory_on_compare(TtMemoryCompare *compare);
/* Replay: @b's contents become those in the parent's checkpoint. */
typedef bool TtMemoryFill(TtBlock *b, Error **errp);
void tt_memory_on_fill(TtMemoryFill *fill);

#endif
