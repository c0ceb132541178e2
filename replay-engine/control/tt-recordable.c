/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which machines and devices cannot be recorded, and why.
 */
#include "qemu/osdep.h"
#include "control/tt-recordable.h"
#include "control/tt-attach.h"
#include "accel-tt/tt-vcpus.h"
#include "hw-tt/memory/tt-memory.h"
#include "hw-tt/state/tt-disks.h"
#include "hw-tt/vfio/tt-vfio.h"
#include "pages/tt-page.h"
#include "run/tt-manifest.h"
#include "tt/hooks.h"
#include "session/tt-paths.h"
#include "session/tt-session.h"
#include "qapi/error.h"
#include "qemu/error-report.h"
#include "qemu/units.h"
#include "qobject/qdict.h"
#include "qom/object.h"
#include "hw/boards.h"
#include "hw/qdev-core.h"
#include "net/net.h"
#include "net/vhost_net.h"
#include "system/cpu-timers.h"
#include "system/cpus.h"
#include "system/kvm.h"
#include "system/runstate.h"
#include "system/tcg.h"

/* Memory of devices, and their ROMs. */
#define DEVICES_MEMORY_MAX  (4 * GiB)
/* Pieces of memory that one may have, or a few. */
#define BLOCKS_OF_DEVICE    16

const char tt_no_icount[] = "-tt and -icount exclude each other: -tt counts instructions "
    "by itself; leave out -icount";

bool tt_net_has_vhost(void)
{
    NetClientState *ncs[64];
    int i, n = qemu_find_net_clients_except(NULL, ncs, NET_CLIENT_DRIVER_NIC,
                                            ARRAY_SIZE(ncs));

    for (i = 0; i < MIN(n, (int)ARRAY_SIZE(ncs)); i++) {
        if (get_vhost_net(ncs[i]) ||
            ncs[i]->info->type == NET_CLIENT_DRIVER_VHOST_USER ||
            ncs[i]->info->type == NET_CLIENT_DRIVER_VHOST_VDPA) {
            return true;
        }
    }
    return false;
}

static bool is_vfio_pci(const char *name)
{
    return g_str_equal(name, "vfio-pci") || g_str_equal(name, "vfio-pci-nohotplug");
}

bool tt_type_is_unrecordable(const char *name)
{
    return g_str_has_prefix(name, "vhost-") ||
        (g_str_has_prefix(name, "vfio-") && !is_vfio_pci(name) &&
         !g_str_equal(name, "vfio-user-pci")) ||
        strstr(name, "-vhost") ||
        g_str_has_prefix(name, "virtio-pmem") ||
        g_str_has_prefix(name, "ivshmem") ||
        g_str_equal(name, "vmware-svga") || g_str_equal(name, "acpi-erst");
}

static int find_unrecordable(Object *obj, void *opaque)
{
    const char *name = object_get_typename(obj);
    char **why = opaque;

    if (!strcmp(name, "iothread") && !tt_iothreads_fold) {
        *why = g_strdup("an iothread that is already running cannot be recorded: start "
                        "QEMU with -tt record, where the main loop does its work, or "
                        "without the iothread object");
    } else if (tt_type_is_unrecordable(name)) {
        *why = g_strdup_printf("device '%s' bypasses QEMU when it writes guest memory, "
                               "so it cannot be recorded: use one that QEMU emulates",
                               name);
    } else if (!strcmp(name, "vfio-user-pci") &&
               object_property_get_bool(obj, "x-direct", NULL)) {
        *why = g_strdup("a vfio-user-pci that was plugged in without -tt shares guest "
                        "memory with its server: start QEMU with -tt record, or use "
                        "dma=messages");
    } else if (is_vfio_pci(name) && !tt_vfio_is_shadowed(obj)) {
        *why = g_strdup("a vfio-pci that was plugged in without -tt writes guest memory "
                        "itself, so it cannot be recorded: start QEMU with -tt record");
    } else if (!strcmp(name, "nvme") &&
               object_property_get_link(obj, "pmrdev", NULL)) {
        *why = g_strdup("writes to a persistent memory region of NVMe bypass QEMU and "
                        "cannot be recorded: leave out pmrdev");
    }
    return *why != NULL;
}

char *tt_unrecordable_device(void)
{
    char *why = NULL;

    object_child_foreach_recursive(object_get_root(), find_unrecordable, &why);
    if (!why && tt_net_has_vhost()) {
        why = g_strdup("vhost cannot be recorded: leave out vhost=on and vhost-user "
                       "netdevs");
    }
    return why;
}

const char *tt_unrecordable_machine(MachineState *ms)
{
    if (!tcg_enabled() && !kvm_enabled()) {
        return "-tt works with accelerator tcg or kvm only: leave out the other one";
    }
    if (ms->smp.max_cpus > TT_VCPUS_MAX) {
        return "-tt records 8 vCPUs at most: use -smp 8 or less";
    }
    if (ms->ram_size > TT_PAGES_MAX * TT_PAGE_BYTES - DEVICES_MEMORY_MAX) {
        return "-tt records 1020 GiB of RAM at most: use a smaller -m";
    }
    if (ms->smp.max_cpus != ms->smp.cpus) {
        return "-tt cannot record a vCPU that is plugged in later: leave out maxcpus";
    }
    return NULL;
}

/* KVM cannot take a vCPU back: options that need that are refused. */
const char *tt_kvm_unrecordable(const TtRecordOptions *opt)
{
    return opt->window_ns ? "last= does not work under KVM yet: leave it out, or record with "
        "-accel tcg" :
        opt->names_reads ? "disk-reads=store works with -accel tcg only: leave it out, or "
        "record with that" :
        opt->names_frames ? "payload=reference works with -accel tcg only: add payload=both, "
        "or record with that" :
        opt->undo ? "undo=console needs full checkpoints, which cannot be taken under KVM "
        "yet: leave it out, or record with -accel tcg" :
        opt->full ? "full=on needs full checkpoints, which cannot be taken under KVM yet: "
        "leave it out, or record with -accel tcg" :
        opt->guard ? "guard=on works with -accel tcg only: leave it out, or record with "
        "that" : NULL;
}

bool tt_can_record(Error **errp)
{
    const char *machine = tt_unrecordable_machine(current_machine);
    g_autofree char *device = machine ? NULL : tt_unrecordable_device();

    if (machine || device) {
        error_setg(errp, "%s", machine ?: device);
    } else if (kvm_enabled() && !tt_is_ready) {
        error_setg(errp, "under KVM only a machine that is made for it can be recorded: "
                   "start QEMU with -tt ready");
    } else if (icount_enabled()) {
        error_setg(errp, "%s", tt_no_icount);
    } else if (current_machine->smp.cpus > 1 && qemu_tcg_mttcg_enabled()) {
        error_setg(errp, "several vCPUs are recorded in one thread: start QEMU "
                   "with -accel tcg,thread=single");
    } else if (runstate_check(RUN_STATE_INMIGRATE)) {
        error_setg(errp, "cannot record during an incoming migration: start when "
                   "it is complete");
    } else if (runstate_check(RUN_STATE_IO_ERROR)) {
        error_setg(errp, "a device is waiting to retry a failed transfer: "
                   "use 'cont' first");
    } else {
        return true;
    }
    return false;
}

/* A device that may not be there at the start of a recording may not be plugged in. A disk
 * that was plugged out can be written again. */
static bool refuse_device(DeviceListener *l, const QDict *opts, bool from_json,
                          Error **errp)
{
    const char *driver = qdict_get_try_str(opts, "driver");
    const char *drive = qdict_get_try_str(opts, "drive");

    if ((drive && !tt_disks_can_write(drive, errp)) || !tt_recording()) {
        return false;
    }
    if (tt_memory_n_blocks() > TT_BLOCKS_MAX - BLOCKS_OF_DEVICE) {
        error_setg(errp, "this recording has seen too many devices that came and went with "
                   "memory of theirs: start another one with 'tt record start'");
    } else if (driver && tt_type_is_unrecordable(driver)) {
        error_setg(errp, "device '%s' bypasses QEMU when it writes guest memory, so it "
                   "cannot be recorded: use one that QEMU emulates", driver);
    } else if (driver && qdict_haskey(opts, "pmrdev")) {
        error_setg(errp, "writes to a persistent memory region of NVMe bypass QEMU and "
                   "cannot be recorded: leave out pmrdev");
    } else if (tt_net_has_vhost()) {
        error_setg(errp, "cannot record with vhost: first remove the netdev that "
                   "has vhost=on or is vhost-user");
    }
    return false;
}

/* One that gave up (its disk may be full) takes no new disks. */
static bool takes_disks(void)
{
    return tt_recording() && (tt_session.live || !tt_session.has_begun);
}

/* What the guest writes to a disk that is plugged in goes to the run from the start. */
static void redirect_disk(DeviceListener *l, DeviceState *dev)
{
    Error *err = NULL;

    if (takes_disks() && dev->hotplugged && !tt_redirect_disks(dev, &err)) {
        error_prepend(&err, "tt: the guest writes to the image of the disk that was "
                      "plugged in: ");
        warn_report_err(err);
    }
}

static void disk_leaves(DeviceListener *l, DeviceState *dev)
{
    g_autofree char *store = tt_disks_leave(dev);

    if (store) {
        warn_report("tt: what the guest wrote to the disk '%s' is not written into the image "
                    "when QEMU exits, since it was unplugged: use 'tt disk commit %s'",
                    dev->id ?: object_get_typename(OBJECT(dev)), tt_printable(store));
    }
}

void tt_watch_devices(void)
{
    static DeviceListener listener = {
        .hide_device = refuse_device, .realize = redirect_disk,
        .unrealize = disk_leaves,
    };
    static bool watched;

    if (!watched) {
        watched = true;
        device_listener_register(&listener);
    }
}
