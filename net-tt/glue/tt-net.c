/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The network backend tt (-netdev tt): Ethernet frames between the VMs of a group, each
 * with the run and the position at which it was sent. A NIC works with it as with any
 * other backend, recorded or not.
 *
 * Context: the BQL is held.
 */
#include "qemu/osdep.h"
#include "tt-net-heard-int.h"
#include "tt-net-port-int.h"
#include "tt-net-socket-int.h"
#include "net-tt/glue/tt-net-epoch.h"
#include "net-tt/glue/tt-net-about.h"
#include "net-tt/glue/tt-net-incident.h"
#include "net/clients.h"
#include "net/net.h"
#include "qapi/error.h"
#include "qapi/qapi-types-net.h"
#include "qemu/error-report.h"
#include "session/tt-session.h"
#include "system/runstate.h"
#include "tt/hooks.h"

#define HELD_MAX 64             /* frames that wait; each peer that comes may leave one */
#define IDLE_S   5              /* of a peer, until it is said */

typedef struct TtNet {
    NetClientState nc;
    TtNetConn *conn;
    TtNetPort port;
    char *group, *address;
    bool listens;
    const char *state;          /* static */
    guint hang_tag, full_tag;   /* a peer may do nothing: it does not take the connection, it
                                 * does not read */
    bool has_said_full;
} TtNet;

static GSList *all_nets;        /* of TtNet, the last one first */

static struct {
    uint64_t next_number;       /* of this process */
    void (*heard)(const TtIncident *i);
} incident;

static TtNet *net_of(NetClientState *nc)
{
    return DO_UPCAST(TtNet, nc, nc);
}

/* ---- from the NIC ---- */

static gboolean say_full(gpointer opaque)
{
    TtNet *n = opaque;

    n->full_tag = 0;
    n->has_said_full = true;
    tt_net_say(&n->port.say, "the peer has not read for %d seconds: what this VM sends waits "
               "until it does", IDLE_S);
    return G_SOURCE_REMOVE;
}

static ssize_t tt_net_receive(NetClientState *nc, const uint8_t *data, size_t len)
{
    TtNet *n = net_of(nc);
    TtFrame f = { .data = data, .len = len };

    if (len < TT_FRAME_BYTES_MIN || len > TT_FRAME_BYTES_MAX ||
        !tt_net_conn_is_open(n->conn)) {
        return len;                     /* nobody is there: lost, as on a cable */
    }
    if (!tt_net_conn_has_room(n->conn) && runstate_is_running()) {
        if (!n->full_tag && !n->has_said_full) {
            n->full_tag = g_timeout_add_seconds(IDLE_S, say_full, n);
        }
        return 0;
    }
    /* While the VM stops, a virtio NIC has no place where a frame could wait: it takes the
     * next one out of its queue, and what is in no queue is in no checkpoint. */
    if (tt_net_conn_is_far_behind(n->conn)) {
        return len;
    }
    tt_net_note_sent(&f);
    tt_net_conn_send(n->conn, &f);
    return len;
}

static void writable(void *opaque)
{
    TtNet *n = opaque;

    g_clear_handle_id(&n->full_tag, g_source_remove);
    n->has_said_full = false;
    qemu_flush_queued_packets(&n->nc);
}

/* ---- to the NIC ---- */

/* The past is of a recording, which goes on afterwards. */
static bool incident_came(TtNet *n, const TtFrame *f)
{
    TtNetHeard what;
    TtIncident i;

    if (tt_net_is_own(f)) {
        return true;                    /* it has been round */
    }
    what = tt_net_incident_came(f, &i);
    if (what == TT_NET_HEARD_TOO_MUCH) {
        tt_net_say(&n->port.say, "an incident is not marked: there are too many");
    } else if (what == TT_NET_HEARD_NEW) {
        tt_net_port_tell_incident(&i);
        if (incident.heard && (tt_past || (tt_recording() && tt_session.has_begun))) {
            tt_net_incident_begins();
            incident.heard(&i);
        }
    }
    return !tt_net_incident_is_pending();
}

static bool frame_came(void *opaque, const TtFrame *f)
{
    TtNet *n = opaque;

    if (f->is_incident) {
        return incident_came(n, f);
    }
    if (tt_net_is_own(f)) {
        tt_net_say(&n->port.say, "a frame of this VM came back: is the group connected in a "
                   "circle?");
        return true;
    }
    return tt_net_port_frame_came(&n->port, f);
}

/* ---- incidents ---- */

void tt_net_incident_init(void (*heard)(const TtIncident *i))
{
    incident.heard = heard;
}

void tt_net_incident_is_done(const TtIncident *i)
{
    if (i) {
        tt_net_note_incident(i);
    }
    if (tt_net_incident_ends()) {
        tt_net_port_release_all();
    }
}

void tt_net_incident_tell(TtIncident *i)
{
    memcpy(i->run, tt_session.manifest.uuid, TT_RUN_BYTES);
    i->number = incident.next_number++;
    tt_net_note_incident(i);
    tt_net_port_tell_incident(i);
}

/* ---- what a port asks for ---- */

static TtNet *net_of_port(TtNetPort *p)
{
    return container_of(p, TtNet, port);
}

static bool to_nic(TtNetPort *p, const uint8_t *data, uint32_t len)
{
    return qemu_send_packet_async(p->nc, data, len, tt_net_port_taken);
}

static void go_on(TtNetPort *p)
{
    TtNet *n = net_of_port(p);

    if (n->conn) {
        tt_net_conn_go_on(n->conn);
    }
}

static void tell_epoch(TtNetPort *p, uint32_t epoch)
{
    TtNet *n = net_of_port(p);

    if (n->conn) {
        tt_net_conn_send_epoch(n->conn, epoch);
    }
}

static void tell_incident(TtNetPort *p, const TtIncident *i)
{
    TtNet *n = net_of_port(p);

    if (n->conn) {
        tt_net_conn_send_incident(n->conn, i);
    }
}

static const TtNetPortOps port_ops = {
    .to_nic = to_nic,
    .go_on = go_on,
    .tell_epoch = tell_epoch,
    .tell_incident = tell_incident,
};

/* The connection is open, or its peer knows of more. */
static void peer_epoch(void *opaque)
{
    TtNet *n = opaque;
    uint32_t theirs = n->conn ? tt_net_conn_epoch(n->conn) : 0;

    if (theirs < tt_net_epoch()) {
        tell_epoch(&n->port, tt_net_epoch());
    } else {
        tt_net_port_epoch_came(theirs);
    }
}

/* ---- the backend ---- */

static gboolean say_hangs(gpointer opaque)
{
    TtNet *n = opaque;

    if (!tt_net_conn_hangs(n->conn)) {
        return G_SOURCE_CONTINUE;
    }
    n->hang_tag = 0;
    tt_net_say(&n->port.say, "nobody takes the connection to %s: the program there is "
               "stopped, or too many wait for it; this VM goes on waiting", n->address);
    return G_SOURCE_REMOVE;
}

static void tell_state(void *opaque, const char *text)
{
    TtNet *n = opaque;

    g_clear_handle_id(&n->hang_tag, g_source_remove);
    if (!strcmp(text, "connecting")) {
        n->hang_tag = g_timeout_add_seconds(IDLE_S, say_hangs, n);
    }
    n->state = text;
    qemu_set_info_str(&n->nc, "group=%s,%s=%s, %s", n->group, n->listens ? "listen" :
                      "connect", n->address, text);
}

/* Of port 0 the kernel has chosen one. */
static void listens(void *opaque, const QIONetListener *l)
{
    TtNet *n = opaque;

    if (g_str_has_suffix(n->address, ":0")) {
        g_autofree char *places = tt_net_socket_places(l);

        if (*places) {
            g_free(n->address);
            n->address = g_steal_pointer(&places);
            info_report("netdev tt %s: listening at %s", n->nc.name, n->address);
        }
    }
}

void tt_net_each(void (*each)(void *opaque, const TtNetAbout *about), void *opaque)
{
    for (GSList *i = all_nets; i; i = i->next) {
        const TtNet *n = i->data;

        each(opaque, &(TtNetAbout) {
            .id = n->nc.name, .group = n->group, .address = n->address,
            .listens = n->listens, .state = n->state,
        });
    }
}

static void tt_net_cleanup(NetClientState *nc)
{
    TtNet *n = net_of(nc);

    if (n->conn) {
        tt_net_conn_free(g_steal_pointer(&n->conn));
        qemu_purge_queued_packets(nc);      /* tt_net_port_taken is not called later */
    }
    g_clear_handle_id(&n->hang_tag, g_source_remove);
    g_clear_handle_id(&n->full_tag, g_source_remove);
    tt_net_port_cleanup(&n->port);
    all_nets = g_slist_remove(all_nets, n);
    g_free(n->group);
    g_free(n->address);
}

static NetClientInfo tt_net_info = {
    .type = NET_CLIENT_DRIVER_TT,
    .size = sizeof(TtNet),
    .receive = tt_net_receive,
    .cleanup = tt_net_cleanup,
};

static const TtNetConnOps conn_ops = {
    .frame = frame_came,
    .writable = writable,
    .epoch = peer_epoch,
    .listens = listens,
    .state = tell_state,
};

static bool parse_options(TtNetConnOptions *o, const NetdevTtOptions *from, Error **errp)
{
    const char *address = from->listen ?: from->connect;
    TtDiag diag;

    if (!from->listen == !from->connect) {
        error_setg(errp, "netdev tt needs either listen=ADDRESS or connect=ADDRESS");
        return false;
    }
    if (!tt_net_group_is_fit(from->group, errp)) {
        return false;
    }
    o->group = from->group;
    o->listens = from->listen;
    if (tt_address_parse(&o->address, address, &diag) ||
        tt_address_check(&o->address, from->key_file, &diag) ||
        (from->key_file && tt_group_key_load(from->key_file, &o->key, &o->key_len,
                                             &diag))) {
        error_setg(errp, "%s", diag.text);
        return false;
    }
    tt_net_key_loaded(from->key_file);
    if (from->connect && !o->address.is_unix && !strcmp(o->address.port, "0")) {
        error_setg(errp, "nobody listens at port 0: connect= needs the port at which the "
                   "other side listens");
        return false;
    }
    return true;
}

int net_init_tt(const Netdev *netdev, const char *name, NetClientState *peer,
                Error **errp)
{
    const NetdevTtOptions *from = &netdev->u.tt;
    TtNetConnOptions o = { 0 };
    NetClientState *nc;
    TtNet *n;

    if (!parse_options(&o, from, errp)) {
        return -1;
    }
    nc = qemu_new_net_client(&tt_net_info, peer, "tt", name);
    n = net_of(nc);
    all_nets = g_slist_prepend(all_nets, n);
    n->group = g_strdup(from->group);
    n->address = g_strdup(from->listen ?: from->connect);
    n->listens = o.listens;
    tt_net_port_init(&n->port, &port_ops, nc, g_strdup_printf("netdev tt %s", name),
                     HELD_MAX);
    o.say = &n->port.say;
    n->conn = tt_net_conn_new(&o, &conn_ops, n, errp);
    if (!n->conn) {
        qemu_del_net_client(nc);
        return -1;
    }
    return 0;
}
