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

/* A vCPU's may be told of twice, and of bytes that it only might write. */
typedef void TtMemoryWritten(bool by_device);

#define TT_MEMORY_WATCHES 2     /* ranges: of what crosses a page */

/* @ram_addr: of QEMU. One range, in pages that then are slow to write; what was watched
 * before is no more. */
void tt_memory_watch(uint64_t ram_addr, uint64_t len, TtMemoryWritten *written);
void tt_memory_watch_also(uint64_t ram_addr, uint64_t len);     /* one more */
/* The same; a vCPU stops behind each store there. A walk of page tables does not count:
 * it tells of each entry that it might write. */
void tt_memory_watch_stopping(uint64_t ram_addr, uint64_t len, TtMemoryWritten *written);
void tt_memory_unwatch(void);
/* Written by other means than a store: a device, or a helper of the vCPU. */
void tt_memory_watch_note(MemoryRegion *mr, uint64_t offset, uint64_t len,
                          bool by_device);
/* Where the vCPU's virtual address @addr leads: to RAM, for *@len bytes at most; or false.
 * *@physical: UINT64_MAX: it is not mapped. */
bool tt_memory_ram_at(CPUState *cpu, uint64_t addr, uint64_t *ram, unsigned *len,
                      uint64_t *physical);

#endif
