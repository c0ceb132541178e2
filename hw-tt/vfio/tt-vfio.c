/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Devices of the host (vfio-pci) under -tt. Registers and interrupts come through QEMU:
 * its short cuts past the vCPU are turned off. The host's IOMMU lets the device reach
 * shadow memory only; the guest sees the device's writes at interrupts, when it reads a
 * register, and in intervals.
 *
 * One set of shadows for each container, which is an address space that devices share.
 */
#include "qemu/osdep.h"
#include "hw-tt/vfio/tt-vfio.h"
#include "hw-tt/foreign/tt-dialogue.h"
#include "hw-tt/foreign/tt-shadows.h"
#include "tt/hooks.h"
#include "hw/pci/pci_device.h"
#include "hw/qdev-core.h"
#include "hw/vfio/pci.h"
#include "hw/vfio/vfio-common.h"
#include "qapi/error.h"
#include "qemu/error-report.h"
#include "qemu/event_notifier.h"
#include "qemu/timer.h"
#include "system/runstate.h"

/* For memory that driver or device poll. No more than a tenth of the time. */
#define INTERVAL_NS (10 * SCALE_MS)

bool tt_vfio_on;

typedef struct Held {
    EventNotifier *e;
    int fd;                             /* of our own */
} Held;

typedef struct Container {
    VFIOContainerBase *vfio;
    TtShadows *shadows;
    QLIST_ENTRY(Container) next;
} Container;

static QLIST_HEAD(, Container) containers = QLIST_HEAD_INITIALIZER(containers);
static QEMUTimer *timer;
static GArray *held;                    /* of Held: signalled while the VM stood */
static uint64_t stats[TT_SHADOWS_STATS];    /* of all containers, for qom-get */

static Container *container_of_vfio(VFIOContainerBase *vfio)
{
    Container *c;

    QLIST_FOREACH(c, &containers, next) {
        if (c->vfio == vfio) {
            return c;
        }
    }
    return NULL;
}

/* ---- notes for tt log --device ---- */

#define DIALOGUE "x-tt-dialogue"

/* NULL: it has none. */
static TtDialogue *dialogue_of(VFIODevice *d)
{
    ObjectProperty *p = object_property_find(OBJECT(d->dev), DIALOGUE);

    return p ? p->opaque : NULL;
}

static void end_dialogue(Object *obj, const char *name, void *opaque)
{
    g_free(opaque);
}

static void begin_dialogue(PCIDevice *pci)
{
    TtDialogue *talk = g_new0(TtDialogue, 1);

    talk->pci = pci;
    object_property_add(OBJECT(pci), DIALOGUE, "notes", NULL, NULL, end_dialogue, talk);
}

static void note_access(VFIODevice *d)
{
    TtDialogue *talk = dialogue_of(d);

    if (talk) {
        tt_dialogue_notes(talk);
    }
}

static void note_irq(VFIODevice *d, EventNotifier *e)
{
    VFIOPCIDevice *pci = container_of(d, VFIOPCIDevice, vbasedev);
    TtDialogue *talk = dialogue_of(d);

    if (!talk) {
        return;
    }
    if (pci->interrupt == VFIO_INT_INTx) {
        tt_dialogue_irq(talk, "INTx", 0);
    } else {
        VFIOMSIVector *vector = container_of(e, VFIOMSIVector, interrupt);

        tt_dialogue_irq(talk, pci->interrupt == VFIO_INT_MSI ? "MSI" : "MSI-X",
                        vector - pci->msi_vectors);
    }
}

/* Where several devices share an address space, nobody knows whose write it was. */
static void changed(void *opaque, uint64_t addr, uint32_t n)
{
    Container *c = opaque;
    VFIODevice *d = QLIST_FIRST(&c->vfio->device_list);
    TtDialogue *talk = d && !QLIST_NEXT(d, container_next) ? dialogue_of(d) : NULL;

    if (talk) {
        tt_dialogue_dma(talk, true, addr, n);
    }
}

/* ---- when bytes go over ---- */

static bool is_master(const VFIODevice *d)
{
    return d->type == VFIO_DEVICE_TYPE_PCI && d->dev->realized &&
        pci_get_word(PCI_DEVICE(d->dev)->config + PCI_COMMAND) & PCI_COMMAND_MASTER;
}

static bool has_master(const VFIOContainerBase *vfio)
{
    VFIODevice *d;

    QLIST_FOREACH(d, &vfio->device_list, container_next) {
        if (is_master(d)) {
            return true;
        }
    }
    return false;
}

static void shadows_in(Container *c)
{
    uint64_t before[TT_SHADOWS_STATS], now[TT_SHADOWS_STATS];

    tt_shadows_stats(c->shadows, before);
    tt_shadows_in(c->shadows);
    tt_shadows_stats(c->shadows, now);
    for (int i = 0; i < TT_SHADOWS_STATS; i++) {
        stats[i] += now[i] - before[i];
    }
}

static void tick(void *opaque)
{
    int64_t began = get_clock();
    Container *c;

    QLIST_FOREACH(c, &containers, next) {
        if (has_master(c->vfio)) {
            shadows_in(c);
            tt_shadows_out(c->shadows);
        }
    }
    timer_mod(timer, qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL) +
              MAX(INTERVAL_NS, 10 * (get_clock() - began)));
}

void tt_vfio_looks_slow(VFIODevice *d)
{
    Container *c = container_of_vfio(d->bcontainer);

    note_access(d);
    if (c && is_master(d)) {
        tt_shadows_out(c->shadows);
    }
}

void tt_vfio_is_looked_at_slow(VFIODevice *d)
{
    Container *c = container_of_vfio(d->bcontainer);

    /* A reader while the VM stands still is not the guest. */
    if (c && is_master(d) && runstate_is_running()) {
        shadows_in(c);
    }
}

/* It may be master from now on, or until now. */
void tt_vfio_config_written_slow(VFIODevice *d, uint32_t addr, int len)
{
    Container *c = container_of_vfio(d->bcontainer);

    note_access(d);                     /* its BARs may be elsewhere now */
    if (c && ranges_overlap(addr, len, PCI_COMMAND, 2)) {
        shadows_in(c);
        tt_shadows_out(c->shadows);
    }
}

/* ---- interrupts ---- */

/* A reset may have put another in its place. Both are of the host's kernel: what is written
 * to one is read from the other. */
static bool is_same(const Held *h, EventNotifier *e)
{
    const uint64_t one = 1;

    return h->e == e && write(h->fd, &one, sizeof(one)) == sizeof(one) &&
        event_notifier_test_and_clear(e);
}

static bool is_held(EventNotifier *e)
{
    for (unsigned i = 0; i < held->len; i++) {
        if (is_same(&g_array_index(held, Held, i), e)) {
            return true;
        }
    }
    return false;
}

bool tt_vfio_holds_slow(VFIODevice *d, EventNotifier *e)
{
    Held h = { .e = e };

    if (runstate_is_running()) {
        tt_vfio_is_looked_at_slow(d);
        note_irq(d, e);
        return false;
    }
    if (is_held(e)) {
        return true;
    }
    /* The device may be reset meanwhile, and close its own. */
    h.fd = dup(event_notifier_get_fd(e));
    if (h.fd < 0) {
        warn_report("vfio %s: an interrupt is lost, since no file descriptors are left: "
                    "raise the limit (ulimit -n)", d->name);
    } else {
        g_array_append_val(held, h);
    }
    return true;
}

static void vm_state(void *opaque, bool running, RunState state)
{
    if (!running) {
        return;
    }
    for (unsigned i = 0; i < held->len; i++) {
        const uint64_t one = 1;
        int fd = g_array_index(held, Held, i).fd;

        if (write(fd, &one, sizeof(one)) < 0) {
            warn_report("vfio: an interrupt of a device is lost: %s", strerror(errno));
        }
        close(fd);
    }
    g_array_set_size(held, 0);
}

/* ---- what the device may reach ---- */

static Container *container_new(VFIOContainerBase *vfio)
{
    Container *c = g_new0(Container, 1);

    c->vfio = vfio;
    c->shadows = tt_shadows_new(changed, c);
    QLIST_INSERT_HEAD(&containers, c, next);
    return c;
}

void *tt_vfio_map_slow(VFIOContainerBase *vfio, uint64_t iova, uint64_t size,
                       void *host, bool readonly)
{
    TtShadowsRange range = { .addr = iova, .size = size, .can_write = !readonly };
    Container *c = container_of_vfio(vfio);
    Error *err = NULL;
    void *shadow;

    range.mr = memory_region_from_host(host, &range.at);
    if (!range.mr || memory_region_is_ram_device(range.mr)) {
        return NULL;            /* registers of another device */
    }
    /* The kernel calls dirty whatever is mapped: of no use, and it costs. */
    vfio->dirty_pages_supported = vfio->dirty_pages_started = false;
    c = c ?: container_new(vfio);
    /* The kernel's is replaced, too. */
    tt_shadows_remove(c->shadows, iova, size, has_master(vfio));
    shadow = tt_shadows_add_here(c->shadows, &range, &err);
    if (!shadow) {
        error_report_err(err);
        tt_vfio_mapped_slow(vfio, iova, size, -ENOMEM);     /* none stays empty */
    }
    return shadow;
}

/* Whether it was never mapped, or is so no more. */
int tt_vfio_mapped_slow(VFIOContainerBase *vfio, uint64_t iova, uint64_t size, int ret)
{
    Container *c = container_of_vfio(vfio);

    if (c) {
        tt_shadows_remove(c->shadows, iova, size, has_master(vfio));
        if (tt_shadows_is_empty(c->shadows)) {
            QLIST_REMOVE(c, next);
            tt_shadows_free(c->shadows);
            g_free(c);
        }
    }
    return ret;
}

/* ---- plugging in ---- */

static bool begin(Error **errp)
{
    if (tt_vfio_on) {
        return true;
    }
    if (!tt_shadows_watch(errp)) {
        return false;
    }
    held = g_array_new(false, false, sizeof(Held));
    qemu_add_vm_change_state_handler(vm_state, NULL);
    timer = timer_new_ns(QEMU_CLOCK_VIRTUAL, tick, NULL);
    timer_mod(timer, qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL) + INTERVAL_NS);
    tt_vfio_on = true;
    return true;
}

bool tt_vfio_realize_slow(PCIDevice *pci, Error **errp)
{
    static const struct { const char *name, *value; } options[] = {
        { "x-no-mmap", "on" }, { "x-no-kvm-intx", "on" }, { "x-no-kvm-msi", "on" },
        { "x-no-kvm-msix", "on" }, { "x-no-kvm-ioeventfd", "on" },
        { "x-no-vfio-ioeventfd", "on" }, { "enable-migration", "off" },
        { "x-pre-copy-dirty-page-tracking", "off" },
        { "x-device-dirty-page-tracking", "off" },
    };
    static const char *const names[TT_SHADOWS_STATS] = {
        "x-shadow-pages", "x-shadow-bytes", "x-shadow-ns", "x-shadow-calls",
    };
    Object *obj = OBJECT(pci);

    for (unsigned i = 0; i < ARRAY_SIZE(options); i++) {
        if (!object_property_parse(obj, options[i].name, options[i].value, errp)) {
            return false;
        }
    }
    for (unsigned i = 0; i < TT_SHADOWS_STATS; i++) {
        if (!object_property_find(obj, names[i])) {
            object_property_add_uint64_ptr(obj, names[i], &stats[i],
                                           OBJ_PROP_FLAG_READ);
        }
    }
    if (!tt_vfio_is_shadowed(obj)) {
        begin_dialogue(pci);
    }
    return begin(errp);
}

bool tt_vfio_is_shadowed(Object *device)
{
    return object_property_find(device, DIALOGUE);
}
