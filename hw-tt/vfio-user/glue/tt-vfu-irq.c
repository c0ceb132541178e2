/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Interrupts of a vfio-user device: the server signals eventfds, the main loop raises
 * the interrupts that the guest chose. None bypasses QEMU: a recording sees each at the
 * vCPU.
 */
#include "qemu/osdep.h"
#include "tt-vfu-int.h"
#include "hw/pci/msi.h"
#include "hw/pci/msix.h"
#include "hw/pci/pci.h"

static int kind_now(TtVfu *d)
{
    if (tt_vfu_conn_is_lost(d->conn)) {
        return TT_VFU_IRQS;
    }
    if (d->plan.msix.at && msix_enabled(&d->pci)) {
        return TT_VFU_MSIX;
    }
    if (d->plan.msi.at && msi_enabled(&d->pci)) {
        return TT_VFU_MSI;
    }
    return d->plan.pin ? TT_VFU_INTX : TT_VFU_IRQS;
}

static unsigned count_of(TtVfu *d, int kind)
{
    switch (kind) {
    case TT_VFU_MSIX:
        return d->plan.msix.n;
    case TT_VFU_MSI:
        return msi_nr_vectors_allocated(&d->pci);
    case TT_VFU_INTX:
        return 1;
    default:
        return 0;
    }
}

/* The guest's choice may be another by now, or the server may be lost. */
static bool is_wanted(const TtVfuVector *v)
{
    int kind = kind_now(v->device);

    return kind == v->device->irq_kind && v->index < count_of(v->device, kind);
}

/* With it the guest sees what the device wrote before. */
static void deliver(TtVfuVector *v)
{
    static const char *const names[] = { "INTx", "MSI", "MSI-X", "off" };
    TtVfu *d = v->device;

    qatomic_set(&v->is_pending, false);
    if (!is_wanted(v)) {
        return;
    }
    tt_vfu_conn_drain(d->conn);         /* what it sent before it signalled */
    if (!is_wanted(v)) {
        return;
    }
    tt_vfu_dma_in(d);
    tt_dialogue_irq(&d->dialogue, names[d->irq_kind], v->index);
    switch (d->irq_kind) {
    case TT_VFU_MSIX:
        msix_notify(&d->pci, v->index);
        break;
    case TT_VFU_MSI:
        msi_notify(&d->pci, v->index);
        break;
    case TT_VFU_INTX:
        d->is_intx_up = true;
        pci_irq_assert(&d->pci);
        break;
    }
}

/* The server shares the descriptor, and may have made it block. */
static bool was_signalled(EventNotifier *e)
{
    uint64_t n;
    struct iovec room = { &n, sizeof(n) };
    ssize_t ret = preadv2(event_notifier_get_fd(e), &room, 1, -1, RWF_NOWAIT);

    if (ret < 0 && errno == EOPNOTSUPP) {       /* before Linux 5.8 */
        return event_notifier_test_and_clear(e);
    }
    return ret == sizeof(n);
}

static void signalled(EventNotifier *e)
{
    TtVfuVector *v = container_of(e, TtVfuVector, event);

    if (was_signalled(e)) {
        qatomic_set(&v->is_pending, true);
    }
    if (tt_vfu_conn_listens(v->conn)) {
        tt_vfu_irq_deliver(v->device);
    }
}

/* The same without the BQL. */
static bool signalled_early(void *opaque)
{
    TtVfuVector *v = opaque;
    TtVfuConn *c = v->conn;
    bool is_seen_to = false;

    tt_vfu_conn_lock(c);
    if (v->device && tt_vfu_conn_listens(c)) {
        if (was_signalled(&v->event)) {
            qatomic_set(&v->is_pending, true);
            tt_vfu_conn_set_irqs(c, true);
        }
        is_seen_to = tt_vfu_conn_ask_vcpu(c);
    }
    tt_vfu_conn_unlock(c);
    return is_seen_to;
}

void tt_vfu_irq_deliver(void *opaque)
{
    TtVfu *d = opaque;

    tt_vfu_conn_set_irqs(d->conn, false);
    for (unsigned i = 0; d->vectors && i < d->vectors->n; i++) {
        if (qatomic_read(&d->vectors->items[i].is_pending)) {
            qatomic_set(&d->has_acted, true);
            deliver(&d->vectors->items[i]);
        }
    }
}

static int set_irqs(TtVfu *d, uint32_t flags, int kind, unsigned start, unsigned count,
                    const int *fds, unsigned n_fds)
{
    uint8_t payload[TT_VFU_SET_IRQS_BYTES];

    tt_vfu_put_set_irqs(payload, flags, kind, start, count);
    return tt_vfu_conn_ask(d->conn, TT_VFU_SET_IRQS, payload, sizeof(payload), fds,
                           n_fds, 0, NULL);
}

static void drop_vectors(TtVfu *d)
{
    TtVfuVectors *all = d->vectors;

    if (!all) {
        return;
    }
    tt_vfu_conn_lock(d->conn);
    for (unsigned i = 0; i < all->n; i++) {
        TtVfuVector *v = &all->items[i];

        v->device = NULL;
        tt_poll_remove(&v->poll);
        event_notifier_set_handler(&v->event, NULL);
        event_notifier_cleanup(&v->event);
    }
    tt_vfu_conn_unlock(d->conn);
    d->vectors = NULL;
    g_free_rcu(all, rcu);               /* the main loop may be about to look at it */
}

void tt_vfu_irq_off(TtVfu *d)
{
    int kind = d->irq_kind;

    d->irq_kind = TT_VFU_IRQS;
    if (kind != TT_VFU_IRQS && !tt_vfu_conn_is_lost(d->conn)) {
        set_irqs(d, TT_VFU_IRQ_NO_DATA | TT_VFU_IRQ_TRIGGER, kind, 0, 0, NULL, 0);
    }
    drop_vectors(d);
    if (d->is_intx_up) {
        d->is_intx_up = false;
        pci_irq_deassert(&d->pci);
    }
}

static bool make_vectors(TtVfu *d, unsigned n)
{
    d->vectors = g_malloc0(sizeof(TtVfuVectors) + n * sizeof(TtVfuVector));
    for (unsigned i = 0; i < n; i++) {
        TtVfuVector *v = &d->vectors->items[i];

        v->device = d;
        v->conn = d->conn;
        v->index = i;
        if (event_notifier_init(&v->event, 0)) {
            tt_vfu_warn(d, "no file descriptors are left for its %u interrupts: raise "
                        "the limit (ulimit -n)", n);
            drop_vectors(d);
            return false;
        }
        d->vectors->n++;
        event_notifier_set_handler(&v->event, signalled);
        v->poll = (TtPoll) {
            .fd = event_notifier_get_fd(&v->event), .ready = signalled_early, .opaque = v,
        };
        tt_poll_add(&v->poll);
    }
    return true;
}

static void irq_on(TtVfu *d, int kind)
{
    unsigned n = count_of(d, kind), max = tt_vfu_conn_max_fds(d->conn);
    int ret = 0;

    if (!n || !make_vectors(d, n)) {
        return;
    }
    d->irq_kind = kind;
    for (unsigned at = 0; at < n && ret >= 0; at += max) {
        int fds[TT_VFU_FDS_MAX];
        unsigned part = MIN(n - at, max);

        for (unsigned i = 0; i < part; i++) {
            fds[i] = event_notifier_get_fd(&d->vectors->items[at + i].event);
        }
        ret = set_irqs(d, TT_VFU_IRQ_EVENTFD | TT_VFU_IRQ_TRIGGER, kind, at, part, fds,
                       part);
    }
    if (ret < 0 && ret != -ENODEV) {
        tt_vfu_warn(d, "the server refuses to signal interrupts: %s", strerror(-ret));
    }
    if (kind == TT_VFU_MSIX && ret >= 0) {
        /* Masks are kept here. A server that has its own begins with all set; one that
         * has none may refuse. */
        set_irqs(d, TT_VFU_IRQ_NO_DATA | TT_VFU_IRQ_UNMASK, kind, 0, n, NULL, 0);
    }
}

void tt_vfu_irq_update(TtVfu *d)
{
    int kind = kind_now(d);

    if (kind != d->irq_kind ||
        (kind == TT_VFU_MSI && (!d->vectors || count_of(d, kind) != d->vectors->n))) {
        tt_vfu_irq_off(d);
        if (kind != TT_VFU_IRQS) {
            irq_on(d, kind);
        }
    }
}

/* The main loop may have seen the signal before us. */
static bool is_up_again(TtVfuVector *v)
{
    return was_signalled(&v->event) | qatomic_xchg(&v->is_pending, false);
}

void tt_vfu_irq_accessed(TtVfu *d)
{
    if (!d->is_intx_up) {
        return;
    }
    /* A server whose line is up still signals again now. It must not go down between:
     * the guest would see an interrupt that nobody sent. */
    set_irqs(d, TT_VFU_IRQ_NO_DATA | TT_VFU_IRQ_UNMASK, TT_VFU_INTX, 0, 1, NULL, 0);
    if (!tt_vfu_conn_is_lost(d->conn) && d->vectors && is_up_again(&d->vectors->items[0])) {
        tt_vfu_conn_drain(d->conn);     /* what it sent before it signalled */
        tt_vfu_dma_in(d);
    } else {
        d->is_intx_up = false;
        pci_irq_deassert(&d->pci);
    }
}
