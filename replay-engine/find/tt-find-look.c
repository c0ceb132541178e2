/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A condition's view of the VM, and where the VM is stopped for it: breakpoints at its
 * addresses, watchpoints on the memory that its last evaluation read. A pointer that it
 * follows is watched as well, so when that moves, the watchpoints move along.
 *
 * Evaluation changes nothing in the VM: no TLB entry, no accessed bit.
 */
#include "qemu/osdep.h"
#include "accel-tt/tt-vcpus.h"
#include "accel-tt/x86/tt-x86-regs.h"
#include "tt-find-int.h"
#include "hw/core/cpu.h"
#include "exec/cpu-common.h"

typedef struct Read {
    uint64_t addr;
    unsigned len;
} Read;

static struct {
    GArray *now, *watched;      /* of Read */
    GPtrArray *breakpoints;     /* of CPUBreakpoint, of each place for each vCPU */
    GPtrArray *watchpoints;     /* the same; NULL: it cannot be watched there */
    bool watches;
    bool all_there;             /* nobody took one out */
} stops;

/* ---- what it sees ---- */

static bool read_reg(void *opaque, TtCondReg reg, uint64_t *value)
{
    *value = tt_target_reg(opaque, reg);
    return true;
}

static void note_read(uint64_t addr, unsigned len)
{
    Read r = { addr, len };

    for (unsigned i = 0; i < stops.now->len; i++) {
        const Read *other = &g_array_index(stops.now, Read, i);

        if (other->addr == addr && other->len == len) {
            return;
        }
    }
    g_array_append_val(stops.now, r);
}

static bool read_mem(void *opaque, uint64_t addr, uint8_t *bytes, unsigned len)
{
    bool is = tt_target_address(opaque, &addr);

    note_read(addr, len);
    return is && addr + len - 1 >= addr &&
        cpu_memory_rw_debug(opaque, addr, bytes, len, false) == 0;
}

static void make_lists(void)
{
    if (!stops.now) {
        stops.now = g_array_new(false, false, sizeof(Read));
        stops.watched = g_array_new(false, false, sizeof(Read));
        stops.breakpoints = g_ptr_array_new();
        stops.watchpoints = g_ptr_array_new();
    }
}

static TtCondSource source_here(void)
{
    return (TtCondSource) { .opaque = tt_vcpu(), .reg = read_reg, .mem = read_mem };
}

TtStatus tt_find_look(const TtCond *c, uint64_t *value)
{
    const TtCondSource source = source_here();

    make_lists();
    g_array_set_size(stops.now, 0);
    return tt_cond_eval(c, &source, value);
}

bool tt_find_place(const TtCond *c, uint64_t *addr, unsigned *len)
{
    const TtCondSource source = source_here();

    return tt_cond_place(c, &source, addr, len) == TT_OK;
}

bool tt_find_is_at_place(const TtCond *c)
{
    uint64_t pc = tt_vcpu()->cc->get_pc(tt_vcpu());
    size_t n, i = 0;
    const uint64_t *places = tt_cond_places(c, &n);

    while (i < n && places[i] != pc) {
        i++;
    }
    return i < n;
}

/* ---- where it stops ---- */

/* A gdb that connects or leaves takes out all stops of its kind: is it there still? */
static bool has_watchpoint(CPUState *cpu, const CPUWatchpoint *mine)
{
    CPUWatchpoint *wp;

    QTAILQ_FOREACH(wp, &cpu->watchpoints, entry) {
        if (wp == mine) {
            return true;
        }
    }
    return false;
}

static bool has_breakpoint(CPUState *cpu, const CPUBreakpoint *mine)
{
    CPUBreakpoint *bp;

    QTAILQ_FOREACH(bp, &cpu->breakpoints, entry) {
        if (bp == mine) {
            return true;
        }
    }
    return false;
}

static void unwatch(void)
{
    unsigned i = 0;
    CPUState *cpu;

    while (i < stops.watchpoints->len) {
        CPU_FOREACH(cpu) {
            CPUWatchpoint *wp = g_ptr_array_index(stops.watchpoints, i++);

            if (has_watchpoint(cpu, wp)) {
                cpu_watchpoint_remove_by_ref(cpu, wp);
            } else if (wp) {
                stops.all_there = false;
            }
        }
    }
    g_ptr_array_set_size(stops.watchpoints, 0);
    g_array_set_size(stops.watched, 0);
}

static void watch(void)
{
    CPUState *cpu;

    for (unsigned i = 0; i < stops.now->len; i++) {
        const Read *r = &g_array_index(stops.now, Read, i);

        CPU_FOREACH(cpu) {
            CPUWatchpoint *wp = NULL;

            if (cpu_watchpoint_insert(cpu, r->addr, r->len, BP_GDB | BP_MEM_WRITE,
                                      &wp)) {
                wp = NULL;          /* it wraps around the end of memory */
            }
            g_ptr_array_add(stops.watchpoints, wp);
        }
    }
    g_array_append_vals(stops.watched, stops.now->data, stops.now->len);
}

void tt_find_follow(void)
{
    bool is_same = stops.watched->len == stops.now->len;

    if (!stops.watches) {
        return;
    }
    for (unsigned i = 0; is_same && i < stops.now->len; i++) {
        const Read *a = &g_array_index(stops.now, Read, i);
        const Read *b = &g_array_index(stops.watched, Read, i);

        is_same = a->addr == b->addr && a->len == b->len;
    }
    if (!is_same) {
        unwatch();
        watch();
    }
}

void tt_find_set_stops(const TtCond *c)
{
    size_t n;
    const uint64_t *places = tt_cond_places(c, &n);
    CPUState *cpu;

    make_lists();
    for (size_t i = 0; i < n; i++) {
        CPU_FOREACH(cpu) {
            CPUBreakpoint *bp;

            cpu_breakpoint_insert(cpu, places[i], BP_GDB, &bp);
            g_ptr_array_add(stops.breakpoints, bp);
        }
    }
    stops.watches = tt_cond_kind(c) == TT_COND_OF_MEMORY;
    stops.all_there = true;
}

bool tt_find_clear_stops(void)
{
    unsigned i = 0;
    CPUState *cpu;

    make_lists();
    while (i < stops.breakpoints->len) {
        CPU_FOREACH(cpu) {
            CPUBreakpoint *bp = g_ptr_array_index(stops.breakpoints, i++);

            if (has_breakpoint(cpu, bp)) {
                cpu_breakpoint_remove_by_ref(cpu, bp);
            } else {
                stops.all_there = false;
            }
        }
    }
    g_ptr_array_set_size(stops.breakpoints, 0);
    unwatch();
    stops.watches = false;
    return stops.all_there;
}
