/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Whose turn it is inside the guest: the root of the page tables, and, where a
 * debugger has said how its kernel is laid out, the process of a 64-bit Linux.
 * Nothing of the VM changes by looking: no TLB entry, no accessed bit.
 *
 * With page table isolation a Linux process has two roots, the one of user mode a
 * page after the kernel's. It maps almost nothing of the kernel; that
 * identifies it.
 */
#include "qemu/osdep.h"
#include "accel-tt/x86/tt-process.h"
#include "hw/core/cpu.h"
#include "cpu.h"
#include "exec/cpu-common.h"

#define ROOT_MASK 0x000ffffffffff000ull
#define ISOLATED  0x1000u               /* in the root of user mode */
#define IS_KERNEL(addr) ((addr) >> 63)

static TtLinuxLayout layout;
static bool is_known;

void tt_process_set_layout(const TtLinuxLayout *l)
{
    layout = *l;
    is_known = true;
}

const TtLinuxLayout *tt_process_layout(void)
{
    return is_known ? &layout : NULL;
}

static bool read_through(CPUState *cpu, uint64_t cr3, uint64_t addr, void *to,
                         size_t len)
{
    CPUX86State *env = cpu_env(cpu);
    uint64_t own = env->cr[3];
    bool ok;

    env->cr[3] = cr3;
    ok = cpu_memory_rw_debug(cpu, addr, to, len, false) == 0;
    env->cr[3] = own;
    return ok;
}

/* Where the kernel keeps what belongs to this vCPU; 0: not known. */
static uint64_t per_cpu(CPUX86State *env)
{
    uint64_t gs = env->segs[R_GS].base;

    return IS_KERNEL(gs) ? gs :
        IS_KERNEL(env->kernelgsbase) ? env->kernelgsbase : 0;
}

/* CR3, or that of the kernel's half of the same process. */
static uint64_t kernel_cr3(CPUState *cpu, uint64_t gs)
{
    uint64_t cr3 = cpu_env(cpu)->cr[3];
    uint8_t byte;

    if (gs && (cr3 & ISOLATED) && !read_through(cpu, cr3, gs, &byte, 1) &&
        read_through(cpu, cr3 & ~(uint64_t)ISOLATED, gs, &byte, 1)) {
        return cr3 & ~(uint64_t)ISOLATED;
    }
    return cr3;
}

void tt_process_now(CPUState *cpu, TtProcess *p)
{
    CPUX86State *env = cpu_env(cpu);
    uint64_t gs = per_cpu(env), cr3 = kernel_cr3(cpu, gs), task;
    int32_t pid;

    *p = (TtProcess) { .pid = -1 };
    if (!(env->cr[0] & CR0_PG_MASK)) {
        return;
    }
    p->root = cr3 & ROOT_MASK;
    if (is_known && gs &&
        read_through(cpu, cr3, gs + layout.current, &task, sizeof(task)) &&
        IS_KERNEL(task) &&
        read_through(cpu, cr3, task + layout.pid, &pid, sizeof(pid)) &&
        read_through(cpu, cr3, task + layout.name, p->name,
                     sizeof(p->name))) {
        size_t len = strnlen((char *)p->name, sizeof(p->name));

        p->pid = pid;
        memset(p->name + len, 0, sizeof(p->name) - len);
    } else {
        memset(p->name, 0, sizeof(p->name));
    }
}
