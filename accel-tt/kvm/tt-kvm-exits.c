/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Exits of a vCPU of KVM: the device is asked, and what it answered is logged, as
 * TCG's helpers do it (accel-tt/tt-inputs.c).
 */
#include "qemu/osdep.h"
#include "accel-tt/tt-inputs.h"
#include "accel-tt/tt-position.h"
#include "accel-tt/tt-vcpu-backend.h"
#include "accel-tt/x86/tt-msr.h"
#include "io/tt-base.h"
#include "log/tt-log.h"
#include "session/tt-ops.h"
#include "tt-kvm-parts-int.h"
#include "tt/hooks.h"
#include "cpu.h"
#include "exec/address-spaces.h"
#include "exec/memory.h"
#include "qemu/error-report.h"
#include "qemu/main-loop.h"
#include "system/kvm.h"
#include "system/runstate.h"
#include <linux/kvm.h>

static void answer(uint8_t kind, uint64_t val, uint64_t *exits)
{
    TtEvent ev = { .kind = kind, .val = val };

    tt_ops->answer(&ev);
    ++*exits;
}

/* ---- ports ---- */

static void do_port(CPUState *cpu, uint64_t *exits)
{
    struct kvm_run *run = cpu->kvm_run;
    uint8_t *at = (uint8_t *)run + run->io.data_offset;
    unsigned size = run->io.size;

    for (uint32_t i = 0; i < run->io.count; i++, at += size, ++*exits) {
        uint32_t val = 0;

        if (run->io.direction == KVM_EXIT_IO_OUT) {
            memcpy(&val, at, size);
            tt_pio_out(cpu, run->io.port, le32_to_cpu(val), size);
        } else {
            val = cpu_to_le32(tt_pio_in(cpu, run->io.port, size));
            memcpy(at, &val, size);
        }
    }
}

/* ---- memory ---- */

/* RAM that KVM has no slot for, or a write to ROM: TCG asks no device either. */
static bool is_memory(struct kvm_run *run)
{
    hwaddr addr = run->mmio.phys_addr;
    MemoryRegionSection s = memory_region_find(get_system_memory(), addr, 1);
    bool is_write = run->mmio.is_write, is_ram, is_readonly;

    if (!s.mr) {
        return false;
    }
    is_ram = memory_region_is_ram(s.mr) || (!is_write && memory_region_is_romd(s.mr));
    is_readonly = s.mr->readonly;
    memory_region_unref(s.mr);
    if (is_ram && !(is_write && is_readonly)) {
        address_space_rw(&address_space_memory, addr, MEMTXATTRS_UNSPECIFIED,
                         run->mmio.data, run->mmio.len, is_write);
    }
    return is_ram;
}

static void do_mmio(CPUState *cpu, uint64_t *exits)
{
    struct kvm_run *run = cpu->kvm_run;
    bool is_write = run->mmio.is_write;
    uint8_t bytes[8] = { 0 };
    TtEvent ev = {
        .kind = is_write ? TT_EV_MMIO_ST : TT_EV_MMIO_LD,
        .addr = run->mmio.phys_addr, .size = run->mmio.len,
    };

    if (is_memory(run)) {
        return;
    }
    tt_device_enter();
    ev.aux = address_space_rw(&address_space_memory, ev.addr,
                              cpu_get_mem_attrs(cpu_env(cpu)), run->mmio.data,
                              run->mmio.len, is_write);
    tt_device_leave();
    memcpy(bytes, run->mmio.data, run->mmio.len);
    ev.val = tt_get_le64(bytes);
    if (run->mmio.len & (run->mmio.len - 1)) {
        ev.size = 0;            /* no size of an access: the address range says it */
        ev.aux |= (uint32_t)run->mmio.len << 16;
    }
    tt_ops->answer(&ev);
    ++*exits;
}

/* ---- MSRs ---- */

/* The time stamp counter is what RDTSC reads. */
static int read_msr(CPUState *cpu, uint32_t index, uint64_t *val)
{
    if (index == MSR_IA32_TSC) {
        *val = tt_kvm_tsc_read(cpu);
        return 0;
    }
    return tt_msr_device_read(cpu, index, val);
}

static void do_msr(CPUState *cpu, bool is_write, uint64_t *exits)
{
    struct kvm_run *run = cpu->kvm_run;
    uint64_t val = run->msr.data;
    int ret;

    tt_device_enter();
    ret = is_write ? tt_msr_device_write(cpu, run->msr.index, val) :
        read_msr(cpu, run->msr.index, &val);
    tt_device_leave();
    if (is_write) {
        tt_msr_wr(run->msr.index, &ret);
    } else {
        tt_msr_rd(run->msr.index, &val, &ret);
        run->msr.data = val;
    }
    run->msr.error = ret < 0;
    ++*exits;
}

/* The kernel keeps the base, too: CPUID shows whether the APIC is on. */
static void put_apic_base(CPUState *cpu)
{
    uint64_t base = cpu_get_apic_base(X86_CPU(cpu)->apic_state);
    struct kvm_sregs sregs;

    if (!kvm_vcpu_ioctl(cpu, KVM_GET_SREGS, &sregs) && sregs.apic_base != base) {
        sregs.apic_base = base;
        kvm_vcpu_ioctl(cpu, KVM_SET_SREGS, &sregs);
    }
}

static int do_msr_unrecorded(CPUState *cpu, bool is_write)
{
    uint64_t n = 0;

    bql_lock();
    do_msr(cpu, is_write, &n);
    if (is_write) {
        put_apic_base(cpu);
    }
    bql_unlock();
    return 0;
}

int tt_kvm_rdmsr(CPUState *cpu)
{
    return do_msr_unrecorded(cpu, false);
}

int tt_kvm_wrmsr(CPUState *cpu)
{
    return do_msr_unrecorded(cpu, true);
}

/* ---- all of them ---- */

static int do_error(CPUState *cpu, uint64_t *exits)
{
    struct kvm_run *run = cpu->kvm_run;

    if (run->internal.suberror == KVM_INTERNAL_ERROR_EMULATION) {
        return tt_kvm_once(cpu, exits) ? TT_KVM_GO_ON : TT_KVM_FAILED;
    }
    error_report("tt: KVM reports internal error %u: record with -accel tcg",
                 run->internal.suberror);
    return TT_KVM_FAILED;
}

int tt_kvm_exit(CPUState *cpu, uint64_t *exits)
{
    struct kvm_run *run = cpu->kvm_run;

    switch (run->exit_reason) {
    case KVM_EXIT_IO:
        do_port(cpu, exits);
        return TT_KVM_GO_ON;
    case KVM_EXIT_MMIO:
        do_mmio(cpu, exits);
        return TT_KVM_GO_ON;
    case KVM_EXIT_X86_RDMSR:
        do_msr(cpu, false, exits);
        return TT_KVM_GO_ON;
    case KVM_EXIT_X86_WRMSR:
        do_msr(cpu, true, exits);
        put_apic_base(cpu);
        return TT_KVM_GO_ON;
    case KVM_EXIT_HLT:
        answer(TT_EV_HLT, 0, exits);
        cpu->halted = 1;
        return EXCP_HLT;
    case KVM_EXIT_SHUTDOWN:
        answer(TT_EV_HLT, 1, exits);
        tt_guest_crash(TT_CRASH_TRIPLE_FAULT);
        qemu_system_reset_request(SHUTDOWN_CAUSE_GUEST_RESET);
        return EXCP_INTERRUPT;
    case KVM_EXIT_SET_TPR:
        answer(TT_EV_TPR_WR, run->cr8, exits);
        return TT_KVM_GO_ON;
    case KVM_EXIT_IRQ_WINDOW_OPEN: {
        TtEvent ev = { .kind = TT_EV_WINDOW };

        tt_log_event(&ev);
        return TT_KVM_GO_ON;
    }
    case KVM_EXIT_INTERNAL_ERROR:
        return do_error(cpu, exits);
    default:
        return kvm_arch_handle_exit(cpu, run) < 0 ? TT_KVM_FAILED : TT_KVM_GO_ON;
    }
}
