/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A recording that begins in the middle of a VM's life (tt record start): what KVM knows
 * of the vCPU beyond its registers.
 *
 * Until then QEMU's own loop (kvm_cpu_exec) has the vCPU, which leaves guest code
 * anywhere. An interrupt may be on its way then, handed to the kernel and not delivered:
 * that is the first event of the recording. No event can express an exception on its way,
 * so the VM runs on until there is none.
 */
#include "qemu/osdep.h"
#include "accel-tt/tt-vcpu-backend.h"
#include "log/tt-log.h"
#include "session/tt-ops.h"
#include "tt-kvm-parts-int.h"
#include "tt/hooks.h"
#include "cpu.h"
#include "hw/i386/apic.h"
#include "system/kvm.h"
#include <linux/kvm.h>

static bool get_events(CPUState *cpu, struct kvm_vcpu_events *e)
{
    memset(e, 0, sizeof(*e));
    return !kvm_vcpu_ioctl(cpu, KVM_GET_VCPU_EVENTS, e);
}

bool tt_kvm_can_begin(CPUState *cpu)
{
    struct kvm_vcpu_events e;

    return get_events(cpu, &e) && !e.exception.injected && !e.exception.pending &&
        !e.nmi.pending && !(e.interrupt.injected && e.interrupt.soft);
}

const char *tt_kvm_refusal(CPUState *cpu)
{
    struct kvm_guest_debug debug = { 0 };

    kvm_arch_update_guest_debug(cpu, &debug);
    return debug.control ? "gdb has breakpoints or watchpoints in this VM, and under KVM "
        "they cannot be recorded: delete them first" : NULL;
}

bool tt_kvm_take_over(CPUState *cpu)
{
    struct kvm_vcpu_events e;

    if (!get_events(cpu, &e)) {
        return false;
    }
    if (e.nmi.injected) {
        tt_interrupt_accepted(cpu, CPU_INTERRUPT_NMI, EXCP02_NMI);
    } else if (e.interrupt.injected) {
        tt_interrupt_accepted(cpu, CPU_INTERRUPT_HARD, e.interrupt.nr);
    }
    return e.nmi.injected || e.interrupt.injected;
}

bool tt_kvm_has_shadow(CPUState *cpu)
{
    struct kvm_vcpu_events e;

    return get_events(cpu, &e) && e.interrupt.shadow;
}

void tt_kvm_log_tpr(CPUState *cpu)
{
    TtEvent ev = {
        .kind = TT_EV_CPU_FLAG, .addr = TT_FLAG_TPR,
        .val = cpu_get_apic_tpr(X86_CPU(cpu)->apic_state),
    };

    tt_log_event(&ev);
}
