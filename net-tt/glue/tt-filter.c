/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The network filter tt (-object filter-tt): what -netdev tt does, on any other netdev.
 * What the NIC sends gets a trailer (net-tt/tt-trailer.h); what comes with one is of
 * another VM of the group, and all else passes as if there were no filter.
 *
 * A filter cannot tell its netdev to wait: what cannot be delivered yet waits here, up to
 * a limit. A trailer does not go with offloads (whoever cuts a frame in pieces, or sums it
 * up, would have to know of it), so NICs see a netdev without any.
 *
 * Context: the BQL is held; a NIC may send in a vCPU's thread.
 */
#include "qemu/osdep.h"
#include "tt-net-port-int.h"
#include "net-tt/glue/tt-net-epoch.h"
#include "net-tt/tt-trailer.h"
#include "net/eth.h"
#include "net/filter.h"
#include "net/queue.h"
#include "qapi/error.h"
#include "qemu/iov.h"
#include "qemu/main-loop.h"
#include "qemu/module.h"
#include "qom/object.h"

#define TYPE_FILTER_TT "filter-tt"
OBJECT_DECLARE_SIMPLE_TYPE(TtFilter, FILTER_TT)

#define HELD_MAX    1024        /* frames; as many as a tap holds */
#define MEMBERS_MAX 64

struct TtFilter {
    NetFilterState parent_obj;
    char *group, *key_file;
    TtTrailerGroup trailers;
    TtNetPort port;
    QEMUBH *announce;
    uint8_t members[MEMBERS_MAX][ETH_ALEN];     /* MAC addresses that sent trailers */
    unsigned n_members;         /* since ever; the last of them are known */
    NetClientInfo *netdev_info; /* of the netdev, before and ... */
    NetClientInfo bare_info;    /* ... while it has no offloads */
};

/* To the next filter, and behind the last to whoever the frame is for. 0: it waits there,
 * and @sent is called. */
static ssize_t pass_on(NetFilterState *nf, NetFilterDirection direction,
                       NetClientState *sender, unsigned flags, const uint8_t *data,
                       size_t len, NetPacketSent *sent)
{
    struct iovec iov = { .iov_base = (void *)data, .iov_len = len };
    NetFilterState *next = nf;

    while ((next = direction == NET_FILTER_DIRECTION_TX ? QTAILQ_NEXT(next, next) :
            QTAILQ_PREV(next, next))) {
        ssize_t ret = qemu_netfilter_receive(next, direction, sender, flags, &iov, 1, NULL);

        if (ret) {
            return ret;
        }
    }
    return qemu_net_queue_send_iov(sender->peer->incoming_queue, sender, flags, &iov, 1,
                                   sent);
}

/* ---- from the NIC ---- */

static ssize_t from_nic(TtFilter *s, NetClientState *nic, unsigned flags,
                        const struct iovec *iov, int iovcnt)
{
    size_t len = iov_size(iov, iovcnt);
    g_autofree uint8_t *bytes = NULL;
    TtFrame f;

    if (len < TT_FRAME_BYTES_MIN) {
        return 0;                       /* it has no room for a trailer of the guest's own */
    }
    if (len + TT_TRAILER_BYTES > NET_BUFSIZE) {
        tt_net_say(&s->port.say, "a frame of the guest is dropped: it has %zu bytes, and at "
                   "most %d can be sent", len, (int)(NET_BUFSIZE - TT_TRAILER_BYTES));
        return len;
    }
    bytes = g_malloc(len + TT_TRAILER_BYTES);
    iov_to_buf(iov, iovcnt, 0, bytes, len);
    f = (TtFrame) { .data = bytes, .len = len };
    tt_net_note_sent(&f);
    tt_trailer_put(bytes + len, &s->trailers, &f);
    pass_on(NETFILTER(s), NET_FILTER_DIRECTION_RX, nic, flags, bytes, len + TT_TRAILER_BYTES,
            NULL);
    return len;
}

/* Others make the checkpoint before the next frame, also if this VM sends none. Later: this
 * may be inside of the netdev. */
static void announce(void *opaque)
{
    TtFilter *s = opaque;
    NetClientState *nic = s->port.nc->peer;
    uint8_t bytes[ETH_ZLEN + TT_TRAILER_BYTES] = { 0 };
    struct eth_header *head = (struct eth_header *)bytes;

    if (!nic || nic->info->type != NET_CLIENT_DRIVER_NIC) {
        return;
    }
    memset(head->h_dest, 0xff, ETH_ALEN);
    memcpy(head->h_source, qemu_get_nic(nic)->conf->macaddr.a, ETH_ALEN);
    head->h_proto = cpu_to_be16(TT_TRAILER_ETHERTYPE);
    tt_trailer_put_epoch(bytes + ETH_ZLEN, &s->trailers, tt_net_epoch());
    pass_on(NETFILTER(s), NET_FILTER_DIRECTION_RX, nic, QEMU_NET_PACKET_FLAG_NONE, bytes,
            sizeof(bytes), NULL);
}

static TtFilter *filter_of(TtNetPort *p)
{
    return container_of(p, TtFilter, port);
}

static void tell_epoch(TtNetPort *p, uint32_t epoch)
{
    qemu_bh_schedule(filter_of(p)->announce);
}

/* ---- to the NIC ---- */

/* Backends lengthen what is too short for some NICs; with a trailer it was not. */
static bool to_nic(TtNetPort *p, const uint8_t *data, uint32_t len)
{
    uint8_t padded[ETH_ZLEN];
    size_t n = sizeof(padded);

    if (net_peer_needs_padding(p->nc) && eth_pad_short_frame(padded, &n, data, len)) {
        data = padded;
        len = n;
    }
    return pass_on(NETFILTER(filter_of(p)), NET_FILTER_DIRECTION_TX, p->nc,
                   QEMU_NET_PACKET_FLAG_NONE, data, len, tt_net_port_taken);
}

static bool is_of_member(const TtFilter *s, const uint8_t *bytes)
{
    for (unsigned i = 0; i < MIN(s->n_members, MEMBERS_MAX); i++) {
        if (!memcmp(s->members[i], bytes + ETH_ALEN, ETH_ALEN)) {
            return true;
        }
    }
    return false;
}

/* One with a trailer. */
static void learn_from(TtFilter *s, const uint8_t *bytes, size_t len)
{
    if (len >= ETH_HLEN && !is_of_member(s, bytes)) {
        memcpy(s->members[s->n_members++ % MEMBERS_MAX], bytes + ETH_ALEN, ETH_ALEN);
    }
}

/* One with none passes unchanged; tt group counts it. */
static void bare_frame_came(TtFilter *s, const uint8_t *bytes, size_t len)
{
    bool has_member = len >= ETH_HLEN && is_of_member(s, bytes);

    tt_net_note_bare(len, has_member);
    if (has_member) {
        tt_net_say(&s->port.say, "a frame of a member of the group came without its "
                   "trailer, so it has no sender: its filter-tt was taken away, or "
                   "something between them cuts frames (a bridge of the host does with "
                   "net.bridge.bridge-nf-call-iptables=1)");
    }
}

static ssize_t from_netdev(TtFilter *s, const struct iovec *iov, int iovcnt)
{
    size_t len = iov_size(iov, iovcnt);
    const uint8_t *bytes = iov->iov_base;
    g_autofree uint8_t *copy = NULL;
    TtMessage m;
    TtDiag diag;
    TtStatus st;

    if (iovcnt > 1) {
        bytes = copy = g_malloc(len);
        iov_to_buf(iov, iovcnt, 0, copy, len);
    }
    st = tt_trailer_get(&m, &s->trailers, bytes, len, &diag);
    if (st == TT_END) {
        bare_frame_came(s, bytes, len);
        return 0;                       /* from outside of the group */
    }
    if (st == TT_OK) {
        learn_from(s, bytes, len);
    }
    if (st) {
        tt_net_say(&s->port.say, "a frame is dropped: %s", diag.text);
    } else if (m.kind == TT_MESSAGE_EPOCH) {
        tt_net_port_epoch_came(m.frame.epoch);
    } else if (!tt_net_is_own(&m.frame)) {      /* as it does by multicast */
        tt_net_port_frame_came(&s->port, &m.frame);
    }
    return len;
}

static ssize_t receive_iov(NetFilterState *nf, NetClientState *sender, unsigned flags,
                           const struct iovec *iov, int iovcnt, NetPacketSent *sent)
{
    TtFilter *s = FILTER_TT(nf);

    return sender == nf->netdev ? from_netdev(s, iov, iovcnt) :
        from_nic(s, sender, flags, iov, iovcnt);
}

/* ---- the object ---- */

static const TtNetPortOps port_ops = {
    .to_nic = to_nic,
    .tell_epoch = tell_epoch,
};

/* NICs ask once, when they are made. */
static bool take_offloads(TtFilter *s, NetClientState *nc, Error **errp)
{
    if (!qemu_has_vnet_hdr(nc)) {
        return true;
    }
    if (nc->vnet_hdr_len) {             /* also of one that is gone */
        error_setg(errp, "the NIC of netdev '%s' uses its offloads, which a trailer does not "
                   "go with: give filter-tt on the command line, or the netdev vnet_hdr=off",
                   nc->name);
        return false;
    }
    s->netdev_info = nc->info;
    s->bare_info = *nc->info;
    s->bare_info.has_vnet_hdr = NULL;
    nc->info = &s->bare_info;
    return true;
}

static void setup(NetFilterState *nf, Error **errp)
{
    TtFilter *s = FILTER_TT(nf);
    g_autofree uint8_t *key = NULL;
    size_t key_len = 0;
    TtDiag diag;

    if (!tt_net_group_is_fit(s->group, errp)) {
        return;
    }
    if (nf->netdev->peer && nf->netdev->peer->info->type == NET_CLIENT_DRIVER_HUBPORT) {
        error_setg(errp, "netdev '%s' is a cable of a hub: give filter-tt the hubport of the "
                   "NIC", nf->netdev_id);
        return;
    }
    if (nf->direction != NET_FILTER_DIRECTION_ALL || !nf->on) {
        error_setg(errp, "filter-tt needs all frames of its netdev: leave out queue and "
                   "status");
        return;
    }
    if (tt_net_port_of(nf->netdev)) {
        error_setg(errp, "netdev '%s' is in a group already: it needs no other filter-tt",
                   nf->netdev_id);
        return;
    }
    if (s->key_file && tt_group_key_load(s->key_file, &key, &key_len, &diag)) {
        error_setg(errp, "%s", diag.text);
        return;
    }
    tt_net_key_loaded(s->key_file);
    if (!take_offloads(s, nf->netdev, errp)) {
        return;
    }
    tt_trailer_group_init(&s->trailers, s->group, key, key_len);
    s->announce = qemu_bh_new(announce, s);
    tt_net_port_init(&s->port, &port_ops, nf->netdev,
                     g_strdup_printf("filter-tt of netdev %s", nf->netdev_id), HELD_MAX);
    s->port.is_filter = true;
}

static void status_changed(NetFilterState *nf, Error **errp)
{
    if (!nf->on) {
        nf->on = true;
        error_setg(errp, "filter-tt cannot be turned off: object-del takes it away");
    }
}

static void cleanup(NetFilterState *nf)
{
    TtFilter *s = FILTER_TT(nf);

    if (s->port.ops) {
        tt_net_note_gone(&s->port);
        qemu_purge_queued_packets(nf->netdev);
    }
    tt_net_port_cleanup(&s->port);
    if (s->announce) {
        qemu_bh_delete(s->announce);
    }
    if (s->netdev_info) {
        nf->netdev->info = s->netdev_info;
    }
    g_free(s->group);
    g_free(s->key_file);
}

static char *get_group(Object *obj, Error **errp)
{
    return g_strdup(FILTER_TT(obj)->group);
}

static bool may_set(Object *obj, Error **errp)
{
    if (FILTER_TT(obj)->port.ops) {
        error_setg(errp, "a filter-tt does not change its group or key: make a new one");
        return false;
    }
    return true;
}

static void set_group(Object *obj, const char *text, Error **errp)
{
    if (!may_set(obj, errp)) {
        return;
    }
    g_free(FILTER_TT(obj)->group);
    FILTER_TT(obj)->group = g_strdup(text);
}

static char *get_key_file(Object *obj, Error **errp)
{
    return g_strdup(FILTER_TT(obj)->key_file);
}

static void set_key_file(Object *obj, const char *text, Error **errp)
{
    if (!may_set(obj, errp)) {
        return;
    }
    g_free(FILTER_TT(obj)->key_file);
    FILTER_TT(obj)->key_file = g_strdup(text);
}

static void class_init(ObjectClass *oc, void *data)
{
    NetFilterClass *nfc = NETFILTER_CLASS(oc);

    object_class_property_add_str(oc, "group", get_group, set_group);
    object_class_property_add_str(oc, "key-file", get_key_file, set_key_file);
    nfc->setup = setup;
    nfc->cleanup = cleanup;
    nfc->status_changed = status_changed;
    nfc->receive_iov = receive_iov;
}

static const TypeInfo filter_tt_info = {
    .name = TYPE_FILTER_TT,
    .parent = TYPE_NETFILTER,
    .class_init = class_init,
    .instance_size = sizeof(TtFilter),
};

static void register_types(void)
{
    type_register_static(&filter_tt_info);
}

type_init(register_types);
