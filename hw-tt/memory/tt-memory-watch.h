/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Every write to some bytes of RAM, through whatever addresses it comes, by vCPUs and by
 * recorded devices.
 *
 * Context: the BQL is held; @written is called where the write is made, before a vCPU's,
 * after a device's.
 */
#ifndef TT_MEMORY_WATCH_H
#define TT_MEMORY_WATCH_H

/* These bytes, some of which are watched. A vCPU's may be told of twice, and of bytes that
 * it only might write. */
typedef void TtMemoryWritten(uint64_t ram_addr, uint64_t len, bool by_device);

#define TT_MEMORY_WATCHES 2     /* ranges: of what crosses a page */

/* @ram_addr: of QEMU. One range, in pages that then are slow to write; what was watched
 * before is no more. */
void tt_memory_watch(uint64_t ram_addr, uint64_t len, TtMemoryWritten *written);
void tt_memory_watch_also(uint64_t ram_addr, uint64_t len);     /* one more */
/* The same; a vCPU stops behind each store there. A walk of page tables does not count:
 * it tells of each entry that it might write. */
void tt_memory_watch_stopping(uint64_t ram_addr, uint64_t len, TtMemoryWritten *written);
void tt_memory_unwatch(void);
/*
 * For an undo log: each store of a vCPU to RAM, before it is made; @old is what stands
 * there. Stores only may follow, and some are told of twice. @old is NULL: something else
 * has written there. The log goes on until NULL is given in its place; from its beginning
 * on, every entry of a TLB must lead the slow way (accel-tt/tcg/tt-undo-tcg.c). One log.
 */
typedef void TtMemoryLog(uint64_t ram_addr, const void *old, size_t len);
void tt_memory_log_stores(TtMemoryLog *log);
/* RAM becomes @old there, and counts as written. The log does not hear of it. */
void tt_memory_put_back(uint64_t ram_addr, const void *old, size_t len);
/* Written by other means than a store: a device, or a helper of the vCPU. */
void tt_memory_watch_note(MemoryRegion *mr, uint64_t offset, uint64_t len,
                          bool by_device);
/* Where the vCPU's virtual address @addr leads: to RAM, for *@len bytes at most; or false.
 * *@physical: UINT64_MAX: it is not mapped. */
bool tt_memory_ram_at(CPUState *cpu, uint64_t addr, uint64_t *ram, unsigned *len,
                      uint64_t *physical);
/* The RAM at a physical address, as the vCPU sees it, in system management mode or not.
 * False: there is none, or something that is read in another way. */
bool tt_memory_ram_at_physical(CPUState *cpu, uint64_t physical, bool is_smm,
                               uint64_t *ram);

#endif
