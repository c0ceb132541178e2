/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The form of a vCPU's state under KVM and under TCG. QEMU's sections of the vCPUs do not
 * say which one they have, so a section of ours does, which comes after them.
 */
#include "qemu/osdep.h"
#include "tt-x86-move.h"
#include "hw/core/cpu.h"
#include "migration/vmstate.h"
#include "qemu/module.h"
#include "qemu/notify.h"
#include "system/kvm.h"
#include "system/system.h"
#include "tt/hooks.h"
#ifdef CONFIG_KVM
#include <linux/kvm.h>
#endif

typedef struct Moved {
    bool is_of_kvm;
    uint8_t shadow;             /* KVM_X86_SHADOW_INT_*, of the only vCPU that KVM has */
} Moved;

void tt_x86_turn_x87(CPUX86State *env, unsigned by)
{
    FPReg st[8];

    QEMU_BUILD_BUG_ON(sizeof(st) != sizeof(env->fpregs));
    memcpy(st, env->fpregs, sizeof(st));
    for (unsigned i = 0; i < 8; i++) {
        env->fpregs[(by + i) & 7] = st[i];
    }
}

uint32_t tt_x86_hidden_flags(const CPUX86State *env, bool shadow)
{
    uint32_t mask = HF_INHIBIT_IRQ_MASK | HF_SMAP_MASK | HF_UMIP_MASK;

    return (env->hflags & ~mask) | (shadow ? HF_INHIBIT_IRQ_MASK : 0) |
        (env->cr[4] & CR4_SMAP_MASK ? HF_SMAP_MASK : 0) |
        (env->cr[4] & CR4_UMIP_MASK ? HF_UMIP_MASK : 0);
}

static bool has_task(const CPUX86State *env)
{
    return env->tr.selector & 0xfffc;
}

uint32_t tt_x86_task_flags(const CPUX86State *env)
{
    return has_task(env) ? env->tr.flags & ~DESC_TSS_BUSY_MASK : env->tr.flags;
}

/* QEMU neither asks KVM for the shadow nor tells it: an interrupt between STI and HLT would
 * be taken too early, and HLT wait for the next one. */
#ifdef CONFIG_KVM
#define SHADOW_OF_STI   KVM_X86_SHADOW_INT_STI

static uint8_t shadow_of_kvm(CPUState *cpu)
{
    struct kvm_vcpu_events events = { 0 };

    return kvm_vcpu_ioctl(cpu, KVM_GET_VCPU_EVENTS, &events) ? 0 : events.interrupt.shadow;
}

static void set_shadow_of_kvm(CPUState *cpu, uint8_t shadow)
{
    struct kvm_vcpu_events events = { 0 };

    if (shadow && !kvm_vcpu_ioctl(cpu, KVM_GET_VCPU_EVENTS, &events)) {
        events.flags |= KVM_VCPUEVENT_VALID_SHADOW;
        events.interrupt.shadow = shadow;
        (void)kvm_vcpu_ioctl(cpu, KVM_SET_VCPU_EVENTS, &events);
    }
}
#else
#define SHADOW_OF_STI   2

static uint8_t shadow_of_kvm(CPUState *cpu)
{
    return 0;
}

static void set_shadow_of_kvm(CPUState *cpu, uint8_t shadow)
{
}
#endif

static void from_kvm(CPUX86State *env, bool shadow)
{
    tt_x86_turn_x87(env, env->fpstt);
    env->hflags = tt_x86_hidden_flags(env, shadow);
    env->tr.flags = tt_x86_task_flags(env);
}

/* Intel's CPUs enter a guest only with a busy one. */
static void from_tcg(CPUX86State *env)
{
    tt_x86_turn_x87(env, -env->fpstt);
    env->tr.flags |= has_task(env) ? DESC_TSS_BUSY_MASK : 0;
}

/* Only what -tt has made ready can be recorded where it arrives; a recording's own
 * checkpoints are of one form, and nobody migrates while it runs. */
static bool is_needed(void *opaque)
{
    return tt_is_ready && !tt_on();
}

static int before_save(void *opaque)
{
    Moved *m = opaque;

    m->is_of_kvm = kvm_enabled();
    m->shadow = kvm_enabled() ? shadow_of_kvm(first_cpu) :
        cpu_env(first_cpu)->hflags & HF_INHIBIT_IRQ_MASK ? SHADOW_OF_STI : 0;
    return 0;
}

static int after_load(void *opaque, int version)
{
    const Moved *m = opaque;
    CPUState *cpu;

    CPU_FOREACH(cpu) {
        if (m->is_of_kvm && !kvm_enabled()) {
            from_kvm(cpu_env(cpu), m->shadow);
        } else if (!m->is_of_kvm && kvm_enabled()) {
            from_tcg(cpu_env(cpu));
        }
    }
    if (kvm_enabled()) {
        set_shadow_of_kvm(first_cpu, m->shadow);
    }
    return 0;
}

static const VMStateDescription vmstate = {
    .name = "tt/form-of-cpus",
    .version_id = 1,
    .minimum_version_id = 1,
    .needed = is_needed,
    .pre_save = before_save,
    .post_load = after_load,
    .fields = (const VMStateField[]) {
        VMSTATE_BOOL(is_of_kvm, Moved),
        VMSTATE_UINT8(shadow, Moved),
        VMSTATE_END_OF_LIST()
    },
};

/* After the vCPUs' sections. KVM's VMs with -tt have one vCPU, so none comes later. */
static void machine_done(Notifier *notifier, void *data)
{
    static Moved moved;

    vmstate_register(NULL, 0, &vmstate, &moved);
}

/* Also without -tt: what was saved with it can be loaded then. */
static void init(void)
{
    static Notifier done = { .notify = machine_done };

    qemu_add_machine_init_done_notifier(&done);
}

migration_init(init)
