/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Writes to the memory that a condition is the value of, whether or not they change it. The
 * vCPU stops behind one by a watchpoint; that of a device is heard of, and the next visit is
 * behind its event. A write that neither sees, through another mapping, is noticed at the
 * next visit if it changed the value.
 */
#include "qemu/osdep.h"
#include "tt-find-int.h"
#include "accel-tt/tt-vcpus.h"
#include "hw-tt/memory/tt-memory-watch.h"
#include "travel/tt-travel.h"
#include "hw/core/cpu.h"

static struct {
    bool each, is_on;
    bool by_vcpu, by_device;    /* since the last visit */
    uint64_t first, hit;        /* positions; UINT64_MAX: none yet */
    /* at the last visit */
    bool has_place, has_value;
    uint64_t addr, value;
    unsigned len;
    uint64_t ram[TT_MEMORY_WATCHES];
    unsigned n_ram;
} w;

static void written(bool by_device)
{
    w.by_device |= by_device;
    w.by_vcpu |= !by_device;
}

/* The RAM behind it. A mapping may have changed since. */
static void watch_ram(void)
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
        return;
    }
    tt_memory_unwatch();
    for (unsigned i = 0; i < n; i++) {
        if (i) {
            tt_memory_watch_also(ram[i], lens[i]);
        } else {
            tt_memory_watch(ram[i], lens[i], written);
        }
    }
    memcpy(w.ram, ram, n * sizeof(ram[0]));
    w.n_ram = n;
    w.is_on = true;
}

static bool is_own(const CPUWatchpoint *wp)
{
    return wp && w.has_place && wp->vaddr == w.addr && wp->len == w.len;
}

void tt_find_written_begin(bool each)
{
    memset(&w, 0, sizeof(w));
    w.each = each;
    w.first = w.hit = UINT64_MAX;
}

void tt_find_written_end(void)
{
    tt_memory_unwatch();
    w.is_on = false;
}

bool tt_find_is_written(const TtCond *c, uint64_t pos, TtStatus s, uint64_t value)
{
    const CPUWatchpoint *wp = tt_travel_watch_hit();
    bool stops = wp || w.each, is = w.by_device || is_own(wp) || (w.by_vcpu && stops);
    uint64_t addr = 0;
    unsigned len = 0;
    bool has = tt_find_place(c, &addr, &len);
    bool is_same = w.has_place && has && addr == w.addr;

    w.first = MIN(w.first, pos);
    is |= s == TT_OK && is_same && w.has_value && value != w.value;
    is &= s == TT_OK && pos > w.first && pos != w.hit;
    if (is) {
        w.hit = pos;
    }
    w.by_device = false;
    w.by_vcpu &= !stops;
    w.has_place = has;
    w.addr = addr;
    w.len = len;
    w.has_value = s == TT_OK;
    w.value = value;
    watch_ram();
    return is;
}
