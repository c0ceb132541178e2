/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Sets KVM up so that a VM can be recorded: everything that the kernel would do without
 * QEMU is turned off, and all MSRs that are not plain state come to QEMU.
 */
#include "qemu/osdep.h"
#include "accel-tt/kvm/tt-kvm.h"
#include "accel-tt/tt-vcpus.h"
#include "accel-tt/x86/tt-msr.h"
#include "accel-tt/x86/tt-cpu-model.h"
#include "io/tt-base.h"
#include "log/tt-log.h"
#include "session/tt-ops.h"
#include "tt-kvm-parts-int.h"
#include "tt/hooks.h"
#include "qapi/error.h"
#include "cpu.h"
#include "exec/address-spaces.h"
#include "exec/memory.h"
#include "hw/boards.h"
#include "hw/i386/pc.h"
#include "hw/qdev-properties.h"
#include "qemu/accel.h"
#include "qom/object.h"
#include "system/kvm.h"
#include "system/kvm_int.h"
#include "system/system.h"
#include <linux/kvm.h>

#define CPUID_ENTRIES_MAX 256
#define CPUID_ENTRY_BYTES 28

/* ---- what is switched off ---- */

void tt_kvm_configure(void)
{
    /* eventfds: a doorbell must come to QEMU. vapic: code of the guest's is patched
     * by QEMU. */
    static GlobalProperty off[] = {
        { "virtio-pci", "ioeventfd", "off", .optional = true },
        { "virtio-mmio", "ioeventfd", "off", .optional = true },
        { "nvme", "ioeventfd", "off", .optional = true },
        { "apic-common", "vapic", "off", .optional = true },
    };

    for (size_t i = 0; i < ARRAY_SIZE(off); i++) {
        qdev_prop_register_global(&off[i]);
    }
    object_register_sugar_prop(ACCEL_CLASS_NAME("kvm"), "kernel-irqchip", "off",
                               false);
}

static bool turn_off(MachineState *ms, const char *name, Error **errp)
{
    return !object_property_find(OBJECT(ms), name) ||
        object_property_parse(OBJECT(ms), name, "off", errp);
}

/* ---- capabilities ---- */

static const struct {
    int cap;
    const char *what;
} needed[] = {
    { KVM_CAP_IMMEDIATE_EXIT, "immediate exits" },
    { KVM_CAP_VCPU_EVENTS, "the state of pending events" },
    { KVM_CAP_X86_USER_SPACE_MSR, "MSR exits to user space" },
    { KVM_CAP_X86_MSR_FILTER, "MSR filters" },
    { KVM_CAP_ENFORCE_PV_FEATURE_CPUID, "a check of hypercalls" },
};

static bool has_needed(Error **errp)
{
    for (size_t i = 0; i < ARRAY_SIZE(needed); i++) {
        if (kvm_check_extension(kvm_state, needed[i].cap) <= 0) {
            error_setg(errp, "KVM on this host lacks %s: use a host with Linux 5.10 or "
                       "newer, or record with -accel tcg", needed[i].what);
            return false;
        }
    }
    return true;
}

/* An instruction that KVM cannot emulate comes to QEMU. Without this, KVM raises #UD
 * where user code executes one, which no CPU does, and what QEMU relies on where nothing
 * is recorded. It is there since Linux 5.15. */
void tt_kvm_leaves_to_emulate(bool on)
{
    if (kvm_check_extension(kvm_state, KVM_CAP_EXIT_ON_EMULATION_FAILURE) > 0) {
        kvm_vm_enable_cap(kvm_state, KVM_CAP_EXIT_ON_EMULATION_FAILURE, 0, on);
    }
}

/* All MSRs but plain state leave to QEMU. */
static bool filter_msrs(Error **errp)
{
    struct kvm_msr_filter filter = { .flags = KVM_MSR_FILTER_DEFAULT_DENY };
    static uint8_t all[32];             /* 256 MSRs from the first on */
    unsigned count;
    const TtMsrRange *state = tt_msr_state(&count);
    int ret;

    assert(count <= KVM_MSR_FILTER_MAX_RANGES);
    memset(all, 0xff, sizeof(all));
    for (unsigned i = 0; i < count; i++) {
        filter.ranges[i] = (struct kvm_msr_filter_range) {
            .flags = KVM_MSR_FILTER_READ | KVM_MSR_FILTER_WRITE,
            .base = state[i].first,
            .nmsrs = state[i].last - state[i].first + 1,
            .bitmap = all,
        };
    }
    ret = kvm_vm_enable_cap(kvm_state, KVM_CAP_X86_USER_SPACE_MSR, 0,
                            KVM_MSR_EXIT_REASON_FILTER);
    if (!ret) {
        ret = kvm_vm_ioctl(kvm_state, KVM_X86_SET_MSR_FILTER, &filter);
    }
    if (ret) {
        error_setg(errp, "KVM on this host does not accept an MSR filter (%s): record "
                   "with -accel tcg", strerror(-ret));
    }
    return !ret;
}

/* BT leaves these flags alone in real CPUs, and with tt-like-hardware=on. */
static bool bt_keeps_flags(void)
{
    const uint32_t flags = CC_S | CC_A | CC_P;
    uint32_t ax = flags << 8;

    asm volatile("sahf; bt %1, %1; lahf" : "+a"(ax) : "r"(0) : "cc");
    return (ax >> 8 & flags) == flags;
}

/* In an emulated host the CPU is TCG, too: one that is like a real one, or not. */
static bool is_like_hardware(void)
{
    uint32_t eax, id[3];

    host_cpuid(1, 0, &eax, &id[0], &id[1], &id[2]);
    if (!(id[1] & CPUID_EXT_HYPERVISOR)) {
        return true;
    }
    host_cpuid(0x40000000, 0, &eax, &id[0], &id[1], &id[2]);
    return memcmp(id, "TCGTCGTCGTCG", sizeof(id)) || bt_keeps_flags();
}

/* What the user asked of KVM that takes it away from us, or NULL. */
static const char *unrecordable_option(void)
{
    return kvm_irqchip_in_kernel() ? "with -accel kvm, -tt records with QEMU's own interrupt "
        "controller only: leave out kernel-irqchip" :
        enable_cpu_pm ? "with -accel kvm, -tt has to see when the guest waits: leave out "
        "-overcommit cpu-pm=on" :
        kvm_dirty_ring_size() ? "with -accel kvm, -tt cannot record with a ring of dirty "
        "pages: leave out dirty-ring-size" : NULL;
}

/* Also for a device with ioeventfd=on: its doorbell would be no exit. Under KVM QEMU's
 * dispatch knows no eventfds either, and asks the device. */
static void turn_off_eventfds(AddressSpace *as)
{
    MemoryListener *l;

    QTAILQ_FOREACH(l, &as->listeners, link_as) {
        if (g_str_has_prefix(l->name, "kvm-")) {
            l->eventfd_add = l->eventfd_del = NULL;
        }
    }
}

/* KVM neither writes its own hypercall over another vendor's nor executes MONITOR and MWAIT,
 * which CPUID has not (since Linux 5.19). It refuses what it does not know. */
static void turn_off_quirks(void)
{
    int known = kvm_check_extension(kvm_state, KVM_CAP_DISABLE_QUIRKS2);

    known &= KVM_X86_QUIRK_FIX_HYPERCALL_INSN | KVM_X86_QUIRK_MWAIT_NEVER_UD_FAULTS;
    kvm_vm_enable_cap(kvm_state, KVM_CAP_DISABLE_QUIRKS2, 0, known);
}

bool tt_kvm_check(MachineState *ms, Error **errp)
{
    const char *why = unrecordable_option();

    if (why) {
        error_setg(errp, "%s", why);
        return false;
    }
    if (ms->smp.max_cpus > 1) {
        error_setg(errp, "with -accel kvm, -tt records only one vCPU: use -smp 1, or "
                   "-accel tcg for several");
        return false;
    }
    if (!has_needed(errp) || !filter_msrs(errp) || !turn_off(ms, "vmport", errp)) {
        return false;
    }
    /* RDPMC faults, as with a CPU without counters. */
    kvm_vm_enable_cap(kvm_state, KVM_CAP_PMU_CAPABILITY, 0, KVM_PMU_CAP_DISABLE);
    turn_off_quirks();
    turn_off_eventfds(&address_space_memory);
    turn_off_eventfds(&address_space_io);
    kvm_state->coalesced_mmio = kvm_state->coalesced_pio = 0;
    MACHINE_GET_CLASS(ms)->default_cpu_type = TT_CPU_MODEL_TYPE;
    if (object_dynamic_cast(OBJECT(ms), TYPE_PC_MACHINE)) {
        /* The guest does not see it, and a VM under TCG, to which this one may migrate, has
         * none. */
        PC_MACHINE_GET_CLASS(ms)->kvmclock_create_always = false;
    }
    tt_like_hardware = is_like_hardware();
    return true;
}

const char *tt_kvm_positions(void)
{
    const char *why = tt_kvm_branches_missing();
    g_autofree char *text = NULL;

    text = g_strdup_printf(
        "exits%s landmarks%s%s%s; %s", why ? " and" : ",",
        why ? " (branches are not counted: " : " and branch counts", why ?: "",
        why ? ")" : "",
        tt_kvm_tsc_is_frozen() ? "the TSC is frozen" :
        "this host cannot freeze the TSC: a guest that reads it cannot be replayed");
    return g_intern_string(text);
}

/* ---- CPUID ---- */

void tt_kvm_log_cpuid(CPUState *cpu)
{
    g_autofree struct kvm_cpuid2 *table =
        g_malloc0(sizeof(*table) + CPUID_ENTRIES_MAX * sizeof(table->entries[0]));
    g_autofree uint8_t *data = g_malloc(CPUID_ENTRIES_MAX * CPUID_ENTRY_BYTES);
    TtEvent ev = { .kind = TT_EV_CPUID_TABLE, .data = data };

    table->nent = CPUID_ENTRIES_MAX;
    if (kvm_vcpu_ioctl(cpu, KVM_GET_CPUID2, table) < 0) {
        table->nent = 0;
    }
    for (uint32_t i = 0; i < table->nent; i++) {
        const struct kvm_cpuid_entry2 *e = &table->entries[i];
        uint8_t *p = data + CPUID_ENTRY_BYTES * i;

        tt_put_le32(p, e->function);
        tt_put_le32(p + 4, e->index);
        tt_put_le32(p + 8, !!(e->flags & KVM_CPUID_FLAG_SIGNIFCANT_INDEX));
        tt_put_le32(p + 12, e->eax);
        tt_put_le32(p + 16, e->ebx);
        tt_put_le32(p + 20, e->ecx);
        tt_put_le32(p + 24, e->edx);
    }
    ev.len = CPUID_ENTRY_BYTES * table->nent;
    tt_log_event(&ev);
}
