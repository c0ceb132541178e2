/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * gdb's watchpoints: takes them away while a movement runs without stops, and makes them
 * known to the TLB without a flush.
 *
 * Context: vCPU thread, outside cpu_exec; tt_watch_marks also BQL with the VM
 * stopped.
 */
#include "qemu/osdep.h"
#include "accel-tt/tcg/tt-watch.h"
#include "accel-tt/tt-vcpus.h"
#include "tt/hooks.h"
#include "hw/core/cpu.h"
#include "exec/cputlb.h"
#include "exec/exec-all.h"
#include "accel/tcg/internal-common.h"
#include "exec/translation-block.h"
#include "qemu/main-loop.h"

static QTAILQ_HEAD(, CPUWatchpoint) hidden = QTAILQ_HEAD_INITIALIZER(hidden);
static bool hid_some[TT_VCPUS_MAX]; /* its TLB has entries made without them */

/*
 * Takes gdb's watchpoints off the vCPU while guest code runs blindly: a huge one
 * would stop or slow each access. Nobody else sees the list meanwhile, the turn
 * holds the token. Old entries of the TLB that know of them are only slow.
 */
void tt_watchpoints_hide(CPUState *cpu)
{
    CPUWatchpoint *wp, *next;

    QTAILQ_FOREACH_SAFE(wp, &cpu->watchpoints, entry, next) {
        if (wp->flags & BP_GDB) {
            QTAILQ_REMOVE(&cpu->watchpoints, wp, entry);
            QTAILQ_INSERT_HEAD(&hidden, wp, entry);
            hid_some[cpu->cpu_index] = true;
        }
    }
}

void tt_watchpoints_restore(CPUState *cpu)
{
    CPUWatchpoint *wp;

    while ((wp = QTAILQ_FIRST(&hidden))) {
        QTAILQ_REMOVE(&hidden, wp, entry);
        QTAILQ_INSERT_HEAD(&cpu->watchpoints, wp, entry);
    }
}

/* @te leads to a page that the watchpoint touches: accesses take the slow way, which
 * looks at the list of watchpoints. */
static void mark(CPUTLBEntry *te, CPUTLBEntryFull *full, const CPUWatchpoint *wp)
{
    static const MMUAccessType accesses[] = { MMU_DATA_LOAD, MMU_DATA_STORE };

    for (size_t i = 0; i < ARRAY_SIZE(accesses); i++) {
        uintptr_t *addr = &te->addr_idx[accesses[i]];
        vaddr page = *addr & TARGET_PAGE_MASK;

        if (*addr == (uintptr_t)-1 || page > wp->vaddr + wp->len - 1 ||
            (page | ~TARGET_PAGE_MASK) < wp->vaddr) {
            continue;
        }
        full->slow_flags[accesses[i]] |= TLB_WATCHPOINT;
        qatomic_set(addr, *addr | TLB_FORCE_SLOW);
    }
}

static void mark_mode(CPUTLBDescFast *fast, CPUTLBDesc *desc,
                      const CPUWatchpoint *wp)
{
    size_t n = (fast->mask >> CPU_TLB_ENTRY_BITS) + 1;

    if (-(wp->vaddr | TARGET_PAGE_MASK) >= wp->len) {
        size_t i = (wp->vaddr >> TARGET_PAGE_BITS) & (n - 1);

        mark(&fast->table[i], &desc->fulltlb[i], wp);
    } else {
        for (size_t i = 0; i < n; i++) {
            mark(&fast->table[i], &desc->fulltlb[i], wp);
        }
    }
    for (size_t i = 0; i < CPU_VTLB_SIZE; i++) {
        mark(&desc->vtable[i], &desc->vfulltlb[i], wp);
    }
}

bool tt_watch_marks_slow(CPUState *cpu, const CPUWatchpoint *wp)
{
    CPUTLB *tlb = &cpu->neg.tlb;

    if (!(wp->flags & BP_GDB) || !tt_remedy(TT_OMIT_WATCH_TLB)) {
        return false;
    }
    qemu_spin_lock(&tlb->c.lock);
    for (int mode = 0; mode < NB_MMU_MODES; mode++) {
        if (tlb->c.dirty & (1 << mode)) {
            mark_mode(&tlb->f[mode], &tlb->d[mode], wp);
        }
    }
    qemu_spin_unlock(&tlb->c.lock);
    return true;
}

static void interrupt(CPUState *cpu)
{
    bool locked = bql_locked();

    if (!locked) {
        bql_lock();
    }
    cpu_interrupt(cpu, CPU_INTERRUPT_DEBUG);
    if (!locked) {
        bql_unlock();
    }
}

bool tt_watchpoint_stops_at_once(CPUState *cpu, CPUWatchpoint *wp, uintptr_t ra)
{
    if (!tt_on() || !(wp->flags & BP_GDB) || tt_mid_block(ra)) {
        return true;
    }
    cpu->watchpoint_hit = wp;
    interrupt(cpu);
    return false;
}

/* Of gdb's, at an access that traps: the vCPU is to stop behind the trap. */
static CPUWatchpoint *behind_trap;

static bool covers(const CPUWatchpoint *wp, vaddr addr, vaddr len)
{
    return addr <= wp->vaddr + wp->len - 1 && wp->vaddr <= addr + len - 1;
}

/* QEMU stops for one watchpoint at a time, and the trap would be lost. */
bool tt_watchpoint_is_guests(CPUState *cpu, CPUWatchpoint *wp, uint64_t addr,
                             uint64_t len, int access)
{
    CPUWatchpoint *own;

    if (!tt_on() || !(wp->flags & BP_GDB)) {
        return false;
    }
    QTAILQ_FOREACH(own, &cpu->watchpoints, entry) {
        if (own->flags & BP_CPU && own->flags & access && covers(own, addr, len)) {
            behind_trap = wp;
            return true;
        }
    }
    return false;
}

void tt_watchpoint_traps(CPUState *cpu)
{
    CPUWatchpoint *wp;

    QTAILQ_FOREACH(wp, &cpu->watchpoints, entry) {
        if (wp == behind_trap) {        /* it is still there */
            cpu->watchpoint_hit = wp;
            cpu_interrupt(cpu, CPU_INTERRUPT_DEBUG);
        }
    }
    behind_trap = NULL;
}

void tt_watchpoints_unmarked(CPUState *cpu)
{
    hid_some[cpu->cpu_index] = true;
}

/* Of RAM, at whatever address: it is in nobody's list. */
static CPUWatchpoint of_ram = { .flags = BP_GDB | BP_MEM_WRITE };

/* As cpu_check_watchpoint, which stops there already if there is another one. */
void tt_stop_behind(CPUState *cpu, uintptr_t ra)
{
    bool is_anew = cpu->watchpoint_hit;

    if (!is_anew) {
        cpu->watchpoint_hit = &of_ram;
    }
    if (is_anew || !tt_mid_block(ra)) {
        interrupt(cpu);
        return;
    }
    cpu_restore_state(cpu, ra);
    cpu->cflags_next_tb = 1 | CF_NOIRQ | CF_MEMI_ONLY | curr_cflags(cpu);
    cpu_loop_exit_noexc(cpu);
}

/* They count from now on: as cpu_watchpoint_insert, which made them known. */
void tt_watchpoints_arm(CPUState *cpu)
{
    CPUWatchpoint *wp;

    if (!hid_some[cpu->cpu_index]) {
        return;
    }
    hid_some[cpu->cpu_index] = false;
    QTAILQ_FOREACH(wp, &cpu->watchpoints, entry) {
        if (!(wp->flags & BP_GDB) || tt_watch_marks_slow(cpu, wp)) {
            continue;
        }
        if (-(wp->vaddr | TARGET_PAGE_MASK) >= wp->len) {
            tlb_flush_page(cpu, wp->vaddr);
        } else {
            tlb_flush(cpu);
        }
    }
}
