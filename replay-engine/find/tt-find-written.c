/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Writes to the memory that a condition is the value of, whether or not they change it. The
 * RAM behind it is watched, so it does not matter through which address one comes: the vCPU
 * stops behind a store, and after a device's event the next visit is behind that. What is
 * no RAM has a watchpoint only. The MMU's own writes to page tables, which nothing hears
 * of, are noticed at the next visit if they changed the value: then the answer is not exact.
 */
#include "qemu/osdep.h"
#include "tt-find-int.h"
#include "accel-tt/tt-vcpus.h"
#include "hw-tt/memory/tt-memory-watch.h"
#include "travel/tt-travel.h"
#include "travel/tt-travel-step.h"
#include "hw/core/cpu.h"

static struct {
    bool is_on;
    const char *inexact;        /* why the answer is; or NULL */
    bool is_hidden;             /* written while the address led nowhere */
    bool by_vcpu, by_device;    /* since the last visit */
    uint64_t first, hit, last;  /* positions, of visits; UINT64_MAX: none yet */
    /* at the last visit */
    bool has_place, has_value;
    uint64_t addr, value;
    unsigned len;
    uint64_t ram[TT_MEMORY_WATCHES];
    unsigned n_ram;
} w;

/* A helper of the vCPU that writes, as for system management mode, ends its block; after a
 * store it stops by itself. */
static void written(uint64_t ram_addr, uint64_t len, bool by_device)
{
    w.by_device |= by_device;
    w.by_vcpu |= !by_device;
    if (!by_device && current_cpu) {
        tt_travel_changes_inside(current_cpu);
    }
}

/* The RAM behind it. True: it is the same as at the last visit, or as before its address
 * led nowhere. */
static bool watch_ram(void)
{
    uint64_t ram[TT_MEMORY_WATCHES], physical;
    unsigned lens[TT_MEMORY_WATCHES], n = 0;

    for (unsigned done = 0, left; w.has_place && done < w.len && n < TT_MEMORY_WATCHES;
         done += lens[n++]) {
        if (!tt_memory_ram_at(tt_vcpu(), w.addr + done, &ram[n], &left, &physical)) {
            n = 0;
            break;
        }
        lens[n] = MIN(left, w.len - done);
    }
    if (w.is_on && n == w.n_ram && !memcmp(ram, w.ram, n * sizeof(ram[0]))) {
        return true;
    }
    if (!n && w.n_ram) {        /* the kernel's, while a program runs: it may come back */
        return false;
    }
    tt_memory_unwatch();
    for (unsigned i = 0; i < n; i++) {
        if (i) {
            tt_memory_watch_also(ram[i], lens[i]);
        } else {
            tt_memory_watch_stopping(ram[i], lens[i], written);
        }
    }
    memcpy(w.ram, ram, n * sizeof(ram[0]));
    w.n_ram = n;
    w.is_on = true;
    w.is_hidden = false;
    return false;
}

/* gdb's awatch stops for reads, too. Of a read of which only a part counts, RAM tells more,
 * unless it has been mapped since the last visit. */
static bool is_own(const CPUWatchpoint *wp)
{
    return wp && w.has_place && (wp->flags & BP_MEM_ACCESS) == BP_MEM_WRITE &&
        ((wp->vaddr == w.addr && wp->len == w.len) ||
         (!w.has_value && wp->vaddr <= w.addr && wp->vaddr + wp->len >= w.addr + w.len &&
          wp->hitaddr < w.addr + w.len));
}

void tt_find_written_begin(void)
{
    memset(&w, 0, sizeof(w));
    w.first = w.hit = UINT64_MAX;
}

void tt_find_written_pause(void)
{
    tt_memory_unwatch();
    w.is_on = w.by_vcpu = w.by_device = false;
}

const char *tt_find_written_end(void)
{
    tt_memory_unwatch();
    w.is_on = false;
    return w.inexact;
}

bool tt_find_is_written(const TtCond *c, uint64_t pos, TtStatus s, uint64_t value)
{
    bool heard = w.by_device || w.by_vcpu, is = heard || is_own(tt_travel_watch_hit());
    bool had_value = w.has_place && w.has_value, is_same;
    uint64_t addr = 0, old = w.addr, before = w.value;
    unsigned len = 0;
    bool has = tt_find_place(c, &addr, &len);

    w.by_device = w.by_vcpu = false;
    w.has_place = has;
    w.addr = addr;
    w.len = len;
    w.has_value = s == TT_OK;
    w.value = value;
    /* Of other memory, by a pointer or a mapping that has changed, it is no write. */
    is_same = watch_ram();
    w.first = MIN(w.first, pos);
    if (s != TT_OK) {
        w.is_hidden |= heard && pos > w.first;
    } else if (w.is_hidden && is_same) {
        w.is_hidden = false;
        w.inexact = "the memory was also written while the page tables in use did not have "
            "its address: give an address that they always have";
    }
    is_same &= had_value && has && addr == old;
    if (!is && is_same && s == TT_OK && value != before) {
        is = true;
        if (pos > w.last + 1) {
            w.inexact = "some writes were noticed late and others may be missing, since the "
                "MMU set bits of a page table there: search single steps, with + 0 * $rax "
                "in the address";
        }
    }
    w.last = pos;
    is &= s == TT_OK && pos > w.first && pos != w.hit;
    if (is) {
        w.hit = pos;
    }
    return is;
}
