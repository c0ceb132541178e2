/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * -device vfio-user-pci,socket=PATH: a PCI device that another process provides by the
 * protocol vfio-user. Each access of the guest is a message, none bypasses QEMU, so the
 * device can be recorded like an emulated one. A server that dies or lies leads to one
 * sentence and an unplugged device.
 */
#include "qemu/osdep.h"
#include "tt-vfu-int.h"
#include "hw/pci/msi.h"
#include "hw/pci/msix.h"
#include "hw/pci/pci.h"
#include "hw/qdev-properties.h"
#include "migration/vmstate.h"
#include "qapi/error.h"
#include "qemu/bswap.h"
#include "qemu/error-report.h"
#include "qemu/main-loop.h"
#include "qemu/module.h"
#include "system/cpus.h"
#include "system/runstate.h"

/* ---- registers ---- */

static bool read_region(TtVfu *d, unsigned region, uint64_t offset, uint8_t *to,
                        unsigned size)
{
    uint8_t payload[TT_VFU_ACCESS_BYTES];
    const uint8_t *answer, *data;
    TtDiag diag;
    int n;

    tt_vfu_put_access(payload, region, offset, size);
    n = tt_vfu_conn_ask(d->conn, TT_VFU_REGION_READ, payload, sizeof(payload), NULL, 0,
                        TT_VFU_ACCESS_BYTES, &answer);
    if (n < 0) {
        return false;
    }
    if (tt_vfu_get_access(&data, region, offset, size, answer, n, &diag)) {
        tt_vfu_conn_lose(d->conn, "%s", diag.text);
        return false;
    }
    memcpy(to, data, size);
    return true;
}

/* As on the bus: a write to memory has no answer. Shadows come in with the answer. */
static bool is_posted(const TtVfu *d, unsigned region)
{
    return region < TT_VFU_BARS && !d->shadows &&
        !(d->pci.io_regions[region].type & PCI_BASE_ADDRESS_SPACE_IO);
}

static void write_region(TtVfu *d, unsigned region, uint64_t offset, uint64_t val,
                         unsigned size)
{
    uint8_t payload[TT_VFU_ACCESS_BYTES + 8];
    size_t at = tt_vfu_put_access(payload, region, offset, size);
    const uint8_t *answer;
    TtDiag diag;
    int n;

    stn_le_p(payload + at, size, val);
    if (is_posted(d, region) &&
        tt_vfu_conn_post(d->conn, TT_VFU_REGION_WRITE, payload, at + size)) {
        return;
    }
    n = tt_vfu_conn_ask(d->conn, TT_VFU_REGION_WRITE, payload, at + size, NULL, 0,
                        TT_VFU_ACCESS_BYTES, &answer);
    if (n >= 0 && tt_vfu_get_access(NULL, region, offset, size, answer, n, &diag)) {
        tt_vfu_conn_lose(d->conn, "%s", diag.text);
    }
}

static uint64_t bar_read(void *opaque, hwaddr addr, unsigned size)
{
    TtVfuBarArea *bar = opaque;
    TtVfu *d = bar->device;
    const TtVfuRegion *r = &d->regions[bar->index];
    uint8_t bytes[8];
    uint64_t val = UINT64_MAX;

    tt_dialogue_notes(&d->dialogue);
    if (r->can_read && addr + size <= r->size &&
        read_region(d, bar->index, addr, bytes, size)) {
        val = ldn_le_p(bytes, size);
    }
    /* Not for who looks while the VM stands; a vCPU may be about to stop. */
    if (qemu_in_vcpu_thread() || runstate_is_running()) {
        tt_vfu_dma_in(d);
        tt_vfu_irq_accessed(d);
    }
    return val;
}

static void bar_write(void *opaque, hwaddr addr, uint64_t val, unsigned size)
{
    TtVfuBarArea *bar = opaque;
    TtVfu *d = bar->device;
    const TtVfuRegion *r = &d->regions[bar->index];

    tt_dialogue_notes(&d->dialogue);
    tt_vfu_dma_out(d);
    d->is_used = true;
    if (r->can_write && addr + size <= r->size) {
        write_region(d, bar->index, addr, val, size);
    }
    tt_vfu_irq_accessed(d);
}

static const MemoryRegionOps bar_ops = {
    .read = bar_read,
    .write = bar_write,
    .endianness = DEVICE_LITTLE_ENDIAN,
    .valid = { .min_access_size = 1, .max_access_size = 8 },
    .impl = { .min_access_size = 1, .max_access_size = 8 },
};

/* ---- configuration space ---- */

static uint32_t config_read(PCIDevice *pci, uint32_t addr, int len)
{
    TtVfu *d = TT_VFU(pci);
    uint32_t val = pci_default_read_config(pci, addr, len);
    uint8_t ours[4], theirs[4];
    bool asks = false;

    if (tt_vfu_conn_is_lost(d->conn)) {
        return UINT32_MAX >> (32 - 8 * len);    /* as where nothing is plugged in */
    }
    for (int i = 0; i < len; i++) {
        asks |= addr + i < TT_VFU_CONFIG_BYTES && d->is_passed_on[addr + i];
    }
    if (asks && read_region(d, TT_VFU_CONFIG, addr, theirs, len)) {
        stn_le_p(ours, len, val);
        for (int i = 0; i < len; i++) {
            ours[i] = d->is_passed_on[addr + i] ? theirs[i] : ours[i];
        }
        val = ldn_le_p(ours, len);
    }
    return val;
}

static void config_write(PCIDevice *pci, uint32_t addr, uint32_t val, int len)
{
    TtVfu *d = TT_VFU(pci);
    bool is_command = ranges_overlap(addr, len, PCI_COMMAND, 2);
    bool was_master = pci_get_word(pci->config + PCI_COMMAND) & PCI_COMMAND_MASTER;

    tt_vfu_conn_lock(d->conn);
    tt_vfu_conn_settle(d->conn);                /* it may be no master afterwards */
    pci_default_write_config(pci, addr, val, len);
    tt_vfu_conn_unlock(d->conn);
    if (is_command && !was_master) {
        tt_vfu_dma_settle(d, false, true);      /* before it may look there */
    }
    if (addr + len <= TT_VFU_CONFIG_BYTES) {
        write_region(d, TT_VFU_CONFIG, addr, val, len);
    }
    if (is_command && was_master) {
        tt_vfu_dma_settle(d, true, true);
    }
    tt_vfu_irq_update(d);
    tt_dialogue_notes(&d->dialogue);
}

/* ---- making it ---- */

static bool ask(TtVfu *d, uint16_t command, const uint8_t *payload, size_t len,
                size_t least, const uint8_t **answer, int *n, Error **errp)
{
    *n = tt_vfu_conn_ask(d->conn, command, payload, len, NULL, 0, least, answer);
    if (*n == -ENODEV) {
        error_setg(errp, "%s", tt_vfu_conn_why(d->conn));
    } else if (*n < 0) {
        error_setg(errp, "the server refuses %s: %s", tt_vfu_command_name(command),
                   strerror(-*n));
    }
    return *n >= 0;
}

/* What the server has, and from it what the guest will see. */
static bool get_plan(TtVfu *d, uint8_t *config, Error **errp)
{
    uint8_t payload[TT_VFU_REGION_BYTES];
    uint32_t irqs[TT_VFU_IRQS];
    const uint8_t *answer;
    TtVfuDevice device;
    TtDiag diag = { 0 };
    TtStatus st;
    int n;

    if (!ask(d, TT_VFU_DEVICE_INFO, payload, tt_vfu_put_device_info(payload), 0,
             &answer, &n, errp)) {
        return false;
    }
    st = tt_vfu_get_device_info(&device, answer, n, &diag);
    for (unsigned i = 0; !st && i < TT_VFU_REGIONS; i++) {
        if (!ask(d, TT_VFU_REGION_INFO, payload, tt_vfu_put_region_info(payload, i), 0,
                 &answer, &n, errp)) {
            return false;
        }
        st = tt_vfu_get_region_info(&d->regions[i], i, answer, n, &diag);
    }
    for (unsigned i = 0; !st && i < TT_VFU_IRQS; i++) {
        if (!ask(d, TT_VFU_IRQ_INFO, payload, tt_vfu_put_irq_info(payload, i), 0,
                 &answer, &n, errp)) {
            return false;
        }
        st = tt_vfu_get_irq_info(&irqs[i], i, answer, n, &diag);
    }
    if (!st && d->regions[TT_VFU_CONFIG].size < TT_VFU_CONFIG_BYTES) {
        st = tt_fail(&diag, TT_ERR_FORMAT, "the configuration space of the server's "
                     "device has fewer than %u bytes", TT_VFU_CONFIG_BYTES);
    }
    if (!st && !read_region(d, TT_VFU_CONFIG, 0, config, TT_VFU_CONFIG_BYTES)) {
        st = tt_fail(&diag, TT_ERR_FORMAT, "%s", tt_vfu_conn_is_lost(d->conn) ?
                     tt_vfu_conn_why(d->conn) : "the configuration space of the "
                     "server's device cannot be read");
    }
    st = st ? st : tt_vfu_plan(&d->plan, config, d->regions, irqs, &diag);
    if (st) {
        error_setg(errp, "%s", diag.text);
    }
    return !st;
}

static void make_header(TtVfu *d, const uint8_t *config)
{
    static const struct { uint8_t at, len; } copied[] = {
        { PCI_VENDOR_ID, 4 }, { PCI_REVISION_ID, 4 }, { PCI_SUBSYSTEM_VENDOR_ID, 4 },
        { PCI_MIN_GNT, 2 },
    };

    for (unsigned i = 0; i < ARRAY_SIZE(copied); i++) {
        memcpy(d->pci.config + copied[i].at, config + copied[i].at, copied[i].len);
    }
    pci_config_set_interrupt_pin(d->pci.config, d->plan.pin);
}

static void make_bars(TtVfu *d)
{
    for (unsigned i = 0; i < TT_VFU_BARS; i++) {
        const TtVfuBar *b = &d->plan.bars[i];
        TtVfuBarArea *area = &d->bars[i];
        g_autofree char *name = g_strdup_printf("vfio-user-bar%u", i);
        uint8_t type = b->is_io ? PCI_BASE_ADDRESS_SPACE_IO :
            (b->is_64 ? PCI_BASE_ADDRESS_MEM_TYPE_64 : 0) |
            (b->is_prefetchable ? PCI_BASE_ADDRESS_MEM_PREFETCH : 0);

        if (b->size) {
            area->device = d;
            area->index = i;
            memory_region_init_io(&area->mr, OBJECT(d), &bar_ops, area, name, b->size);
            pci_register_bar(&d->pci, i, type, &area->mr);
        }
    }
}

static bool make_caps(TtVfu *d, const uint8_t *config, Error **errp)
{
    const TtVfuPlan *p = &d->plan;

    if (p->msi.at && msi_init(&d->pci, p->msi.at, p->msi.n, p->msi.is_64,
                              p->msi.has_masks, errp) < 0) {
        return false;
    }
    if (p->msix.at) {
        if (msix_init(&d->pci, p->msix.n, &d->bars[p->msix.table_bar].mr,
                      p->msix.table_bar, p->msix.table_at,
                      &d->bars[p->msix.pba_bar].mr, p->msix.pba_bar, p->msix.pba_at,
                      p->msix.at, errp) < 0) {
            return false;
        }
        for (unsigned i = 0; i < p->msix.n; i++) {
            msix_vector_use(&d->pci, i);
        }
    }
    for (unsigned i = 0; i < p->n_caps; i++) {
        const TtVfuCap *c = &p->caps[i];

        if (pci_add_capability(&d->pci, c->id, c->at, c->len, errp) < 0) {
            return false;
        }
        memcpy(d->pci.config + c->at + 2, config + c->at + 2, c->len - 2);
        memset(d->is_passed_on + c->at + 2, true, c->len - 2);
    }
    return true;
}

static void unplug(void *opaque)
{
    TtVfu *d = opaque;

    tt_vfu_irq_off(d);
    /* A bus or a guest without hot-plug keeps it, and reads all ones. */
    qdev_unplug(DEVICE(d), NULL);
}

static void lost(void *opaque, const char *why)
{
    TtVfu *d = opaque;

    error_report("%s '%s': %s; the guest sees an unplugged device", TYPE_TT_VFU,
                 d->path, why);
    tt_vfu_dma_lost(d);
    qemu_bh_schedule(d->unplug);
}

static void vm_state(void *opaque, bool running, RunState state)
{
    TtVfu *d = opaque;

    tt_vfu_conn_listen(d->conn, running);
    if (running) {
        tt_vfu_irq_deliver(d);
    }
}

static void device_exit(PCIDevice *pci)
{
    TtVfu *d = TT_VFU(pci);

    if (d->state_handler) {
        qemu_del_vm_change_state_handler(d->state_handler);
        d->state_handler = NULL;
    }
    if (d->conn) {
        tt_vfu_irq_off(d);
    }
    tt_vfu_dma_end(d);
    tt_vfu_conn_close(d->conn);
    d->conn = NULL;
    tt_vfu_early_end(d);
    if (d->plan.msix.at && msix_present(pci)) {
        msix_unuse_all_vectors(pci);
        msix_uninit(pci, &d->bars[d->plan.msix.table_bar].mr,
                    &d->bars[d->plan.msix.pba_bar].mr);
    }
    if (d->plan.msi.at && msi_present(pci)) {
        msi_uninit(pci);
    }
    if (d->unplug) {
        qemu_bh_delete(d->unplug);
        d->unplug = NULL;
    }
}

static void realize(PCIDevice *pci, Error **errp)
{
    static const TtVfuConnOps ops = {
        .serve = tt_vfu_dma_serve, .can_early = tt_vfu_early_can,
        .serve_early = tt_vfu_early_serve, .settle = tt_vfu_early_settle,
        .deliver = tt_vfu_irq_deliver, .lost = lost,
    };
    TtVfu *d = TT_VFU(pci);
    uint8_t config[TT_VFU_CONFIG_BYTES];

    d->irq_kind = TT_VFU_IRQS;
    d->silent_s = TT_VFU_UNUSED;
    d->dialogue.pci = pci;
    if (!d->path || !*d->path) {
        error_setg(errp, "vfio-user-pci needs the server's socket: socket=PATH");
        return;
    }
    if (!d->deadline_s || d->deadline_s > 3600) {
        error_setg(errp, "timeout of vfio-user-pci takes seconds, from 1 to 3600");
        return;
    }
    tt_vfu_early_init(d);
    d->conn = tt_vfu_conn_open(d->path, d->deadline_s, &ops, d, errp);
    if (!d->conn || !tt_vfu_dma_init(d, errp) || !get_plan(d, config, errp)) {
        error_prepend(errp, "vfio-user-pci '%s': ", d->path);
        device_exit(pci);
        return;
    }
    make_header(d, config);
    make_bars(d);
    if (!make_caps(d, config, errp)) {
        error_prepend(errp, "vfio-user-pci '%s': ", d->path);
        device_exit(pci);
        return;
    }
    d->unplug = qemu_bh_new_guarded(unplug, d, &DEVICE(d)->mem_reentrancy_guard);
    tt_vfu_conn_start(d->conn);
    tt_vfu_dma_begin(d);
    d->state_handler = qemu_add_vm_change_state_handler(vm_state, d);
    tt_vfu_conn_listen(d->conn, runstate_is_running());
}

static void reset_enter(Object *obj, ResetType type)
{
    tt_vfu_conn_settle(TT_VFU(obj)->conn);
}

static void reset_hold(Object *obj, ResetType type)
{
    TtVfu *d = TT_VFU(obj);
    bool was_master = pci_get_word(d->pci.config + PCI_COMMAND) & PCI_COMMAND_MASTER;

    d->is_used = false;
    d->silent_s = TT_VFU_UNUSED;
    /* MSI is turned off after this: interrupts begin when the guest configures it. */
    if (d->conn) {
        tt_vfu_irq_off(d);
        tt_vfu_conn_ask(d->conn, TT_VFU_RESET, NULL, 0, NULL, 0, 0, NULL);
        tt_vfu_dma_settle(d, was_master, false);
    }
}

/* Has the server guest RAM itself? Then nobody can record what it does. */
static bool is_direct(Object *obj, Error **errp)
{
    return TT_VFU(obj)->is_direct;
}

/* What looking at shadows has cost so far, for qom-get. */
static void instance_init(Object *obj)
{
    static const char *const names[] = {
        "x-shadow-pages", "x-shadow-bytes", "x-shadow-ns", "x-shadow-calls",
    };
    TtVfu *d = TT_VFU(obj);

    object_property_add_bool(obj, "x-direct", is_direct, NULL);
    for (unsigned i = 0; i < ARRAY_SIZE(names); i++) {
        object_property_add_uint64_ptr(obj, names[i], &d->stats[i], OBJ_PROP_FLAG_READ);
    }
}

static const Property properties[] = {
    DEFINE_PROP_STRING("socket", TtVfu, path),
    DEFINE_PROP_UINT32("timeout", TtVfu, deadline_s, 10),
    DEFINE_PROP_STRING("dma", TtVfu, dma),
    DEFINE_PROP_UINT32("interval", TtVfu, interval_ms, 10),
};

static const VMStateDescription vmstate = { .name = TYPE_TT_VFU, .unmigratable = 1 };

static void class_init(ObjectClass *klass, void *data)
{
    DeviceClass *dc = DEVICE_CLASS(klass);
    PCIDeviceClass *pc = PCI_DEVICE_CLASS(klass);
    ResettableClass *rc = RESETTABLE_CLASS(klass);

    dc->desc = "PCI device of a vfio-user server";
    dc->vmsd = &vmstate;
    device_class_set_props(dc, properties);
    set_bit(DEVICE_CATEGORY_MISC, dc->categories);
    pc->realize = realize;
    pc->exit = device_exit;
    pc->config_read = config_read;
    pc->config_write = config_write;
    rc->phases.enter = reset_enter;
    rc->phases.hold = reset_hold;
}

static const TypeInfo types[] = {
    {
        .name = TYPE_TT_VFU,
        .parent = TYPE_PCI_DEVICE,
        .instance_size = sizeof(TtVfu),
        .instance_init = instance_init,
        .class_init = class_init,
        .interfaces = (InterfaceInfo[]) {
            { INTERFACE_CONVENTIONAL_PCI_DEVICE }, { }
        },
    },
};

DEFINE_TYPES(types)
