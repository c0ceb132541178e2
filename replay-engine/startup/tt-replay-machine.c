/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The replay machine: CPUs of the recorded type, and nothing else. Memory
 * blocks and their map come from the log (tt-memory.c); ports and MMIO end in
 * the log (accel-tt/tt-inputs.c).
 */
#include "qemu/osdep.h"
#include "accel-tt/tt-vcpus.h"
#include "accel-tt/x86/tt-target.h"
#include "convert/tt-convert.h"
#include "hw-tt/screen/tt-screen.h"
#include "replay/tt-replay.h"
#include "run/tt-manifest.h"
#include "session/tt-session.h"
#include "qapi/error.h"
#include "hw/core/cpu.h"
#include "cpu.h"
#include "qemu/main-loop.h"
#include "qemu/error-report.h"
#include "qobject/qdict.h"
#include "hw/boards.h"
#include "hw/qdev-core.h"
#include "hw/i386/x86.h"
#include "exec/address-spaces.h"
#include "system/system.h"
#include "net/net.h"
#include "net/vhost_net.h"

static void start_in_vcpu(CPUState *cpu, run_on_cpu_data data)
{
    if (tt_convert_is_on()) {
        tt_convert_start(cpu);
    } else {
        tt_replay_start(cpu);
    }
}

/* First turn of the main loop: the machine has been reset. */
static void start_bh(void *opaque)
{
    async_run_on_cpu(opaque, start_in_vcpu, RUN_ON_CPU_NULL);
}

static void make_cpu(ObjectClass *oc, unsigned apic_id)
{
    Object *cpu = object_new_with_class(oc);
    Error *err = NULL;

    object_property_set_uint(cpu, "apic-id", apic_id, &error_abort);
    object_property_set_bool(cpu, "apic", false, &error_abort);
    if (!qdev_realize(DEVICE(cpu), NULL, &err) ||
        !tt_target_adopt_identity(CPU(cpu), &tt_session.manifest, &err)) {
        error_reportf_err(err, "-tt replay: ");
        exit(1);
    }
}

static void machine_init(MachineState *ms)
{
    const TtManifest *m = &tt_session.manifest;
    ObjectClass *oc = object_class_by_name(m->cpu_type);

    if (m->n_cpus > TT_VCPUS_MAX) {
        error_report("-tt replay: the run has %u vCPUs, but this version supports %d at "
                     "most", m->n_cpus, TT_VCPUS_MAX);
        exit(1);
    }
    if (!oc || !object_class_dynamic_cast(oc, TYPE_X86_CPU) ||
        object_class_is_abstract(oc)) {
        g_autofree char *name = g_strescape(m->cpu_type, NULL);

        error_report("-tt replay: the run needs CPU type '%s', which this QEMU "
                     "does not have", name);
        exit(1);
    }
    for (unsigned i = 0; i < MIN(m->n_cpus, TT_VCPUS_MAX); i++) {
        make_cpu(oc, i);
    }
    if (tt_screen_is_possible()) {
        tt_screen_start();
    }
    aio_bh_schedule_oneshot(qemu_get_aio_context(), start_bh, first_cpu);
}

static void machine_class_init(ObjectClass *oc, void *data)
{
    MachineClass *mc = MACHINE_CLASS(oc);

    mc->desc = "replay of a recorded run (selected by -tt replay)";
    mc->init = machine_init;
    mc->max_cpus = 1;
    mc->default_ram_size = 0;
    mc->default_ram_id = NULL;
    mc->no_parallel = 1;
    mc->no_floppy = 1;
    mc->no_cdrom = 1;
    mc->default_cpu_type = NULL;
    mc->cpu_index_to_instance_props = NULL;     /* they have no sockets */
}

static const TypeInfo machine_type = {
    .name = MACHINE_TYPE_NAME("tt-replay"),
    .parent = TYPE_X86_MACHINE,     /* the vmstate of the CPU asks its class */
    .class_init = machine_class_init,
};

static void register_types(void)
{
    type_register_static(&machine_type);
}

type_init(register_types)
