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
#include "tt-net-int.h"
#include "net-tt/glue/tt-net-epoch.h"
#include "net-tt/glue/tt-net-incident.h"
#include "net/clients.h"
#include "net/net.h"
#include "qapi/error.h"
#include "qapi/qapi-types-net.h"
#include "qemu/main-loop.h"
#include "qemu/timer.h"
#include "session/tt-session.h"
#include "system/runstate.h"
#include "tt/hooks.h"

#define HELD_MAX 64             /* each peer that comes leaves one at most */
#define AGAIN_MS 1

typedef struct TtNet {
    NetClientState nc;
    TtNetConn *conn;
    TtHeard heard;
    GQueue held;                /* of TtFrame: cannot be passed on yet */
    TtFrame *queued;            /* nic_is_full: what the NIC has not taken yet */
    bool nic_is_full;
    QEMUBH *release;
    QEMUTimer *again;           /* the recording has not begun yet */
    VMChangeStateEntry *vm_state;
    char *where;                /* for `info network` */
} TtNet;

static GSList *all_nets;        /* of TtNet */
static struct {
    uint32_t now;
    bool (*wanted)(uint32_t epoch);
} epoch;
static struct {
    uint64_t next_number;       /* of this process */
    void (*heard)(const TtIncident *i);
} incident;

static TtNet *net_of(NetClientState *nc)
{
    return DO_UPCAST(TtNet, nc, nc);
}

/* ---- from the NIC ---- */

static void want_epoch(uint32_t e);

static ssize_t tt_net_receive(NetClientState *nc, const uint8_t *data, size_t len)
{
    TtNet *n = net_of(nc);
    TtFrame f = { .data = data, .len = len };

    if (len < TT_FRAME_BYTES_MIN || len > TT_FRAME_BYTES_MAX ||
        !tt_net_conn_is_open(n->conn)) {
        return len;                     /* nobody is there: lost, as on a cable */
    }
    if (!tt_net_conn_has_room(n->conn)) {
        return 0;
    }
    tt_net_note_sent(&f);
    tt_net_conn_send(n->conn, &f);
    return len;
}

static void writable(void *opaque)
{
    TtNet *n = opaque;

    qemu_flush_queued_packets(&n->nc);
}

/* ---- to the NIC ---- */

static TtFrame *copy_of(const TtFrame *f)
{
    TtFrame *copy = g_memdup2(f, sizeof(*f));

    copy->data = g_memdup2(f->data, f->len);
    return copy;
}

static void free_frame(gpointer opaque)
{
    TtFrame *f = opaque;

    if (f) {
        g_free((void *)f->data);
        g_free(f);
    }
}

static void delivered(NetClientState *nc, ssize_t len)
{
    TtNet *n = net_of(nc);

    n->nic_is_full = false;
    tt_net_frames_taken(n->queued);
    g_clear_pointer(&n->queued, free_frame);
    if (n->held.length) {
        qemu_bh_schedule(n->release);
    } else if (n->conn) {
        tt_net_conn_go_on(n->conn);
    }
}

/* Frames on their way at a checkpoint of the group are kept with it. */
static void keep(TtNet *n, const TtFrame *f)
{
    if (f->epoch < epoch.now) {
        tt_net_note_kept(f, n->nc.name);
    }
}

/* False: the NIC has no room for more; delivered() is called when it has. */
static bool deliver(TtNet *n, const TtFrame *f)
{
    if (!n->nc.peer || n->nc.link_down || n->nc.peer->link_down) {
        return true;
    }
    tt_net_note_delivered(f);
    keep(n, f);
    n->nic_is_full = !qemu_send_packet_async(&n->nc, f->data, f->len, delivered);
    if (n->nic_is_full) {
        n->queued = copy_of(f);
        tt_net_frames_moved(f, n->queued);
    }
    tt_net_frames_taken(f);
    return !n->nic_is_full;
}

/*
 * Nothing is delivered while the VM stands still or its past is shown (by the time it is,
 * another run may be recorded), before the recording has begun (it would be in no log), and
 * nothing that was sent after a checkpoint that this VM has not made (that is asked for) or
 * after an incident that is not marked here yet.
 * A NIC that is full stays so when another peer comes.
 */
static bool may_deliver(TtNet *n, const TtFrame *f)
{
    if (n->nic_is_full || !runstate_is_running() || tt_past ||
        tt_net_incident_is_pending()) {
        return false;
    }
    if (tt_recording() && !tt_session.has_begun) {
        timer_mod(n->again, qemu_clock_get_ms(QEMU_CLOCK_REALTIME) + AGAIN_MS);
        return false;
    }
    if (f->epoch > epoch.now) {
        want_epoch(f->epoch);
    }
    return f->epoch <= epoch.now;
}

/* The VM runs again, or a checkpoint was made. In the main loop, not among the handlers of
 * its start. */
static void release_held(void *opaque)
{
    TtNet *n = opaque;
    TtFrame *f;

    while ((f = g_queue_peek_head(&n->held)) && may_deliver(n, f)) {
        g_queue_pop_head(&n->held);
        deliver(n, f);
        free_frame(f);
    }
    if (n->conn && !n->held.length && !n->nic_is_full) {
        tt_net_conn_go_on(n->conn);
    }
}

static void vm_state_changed(void *opaque, bool running, RunState state)
{
    TtNet *n = opaque;

    if (running) {
        qemu_bh_schedule(n->release);
    }
}

static void tell_all(const TtIncident *incident);

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
        tt_net_conn_say(n->conn, "an incident is not marked: there are too many");
    } else if (what == TT_NET_HEARD_NEW) {
        tell_all(&i);
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
        tt_net_conn_say(n->conn, "a frame of this VM came back: is the group connected "
                        "in a circle?");
        return true;
    }
    if (!tt_heard_is_new(&n->heard, f)) {
        tt_net_conn_say(n->conn, "a frame is dropped: its number %" PRIu64 " was seen "
                        "before, or it is far too late", f->seq);
        return true;
    }
    /* To ask for a checkpoint may end the connection that the bytes are of. */
    if (n->held.length || f->epoch > epoch.now || !may_deliver(n, f)) {
        if (n->held.length < HELD_MAX) {
            g_queue_push_tail(&n->held, copy_of(f));
        } else {
            tt_net_conn_say(n->conn, "a frame is dropped: %u others are waiting already",
                            HELD_MAX);
        }
        qemu_bh_schedule(n->release);
        return false;
    }
    return deliver(n, f);
}

/* ---- incidents ---- */

static void tell_all(const TtIncident *what)
{
    for (GSList *i = all_nets; i; i = i->next) {
        TtNet *n = i->data;

        if (n->conn) {
            tt_net_conn_send_incident(n->conn, what);
        }
    }
}

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
        for (GSList *n = all_nets; n; n = n->next) {
            qemu_bh_schedule(((TtNet *)n->data)->release);
        }
    }
}

void tt_net_incident_tell(TtIncident *i)
{
    memcpy(i->run, tt_session.manifest.uuid, TT_RUN_BYTES);
    i->number = incident.next_number++;
    tt_net_note_incident(i);
    tell_all(i);
}

/* ---- checkpoints of the group ---- */

uint32_t tt_net_epoch(void)
{
    return epoch.now;
}

bool tt_net_is_there(void)
{
    return all_nets;
}

void tt_net_epoch_init(bool (*wanted)(uint32_t epoch))
{
    epoch.wanted = wanted;
}

static void want_epoch(uint32_t e)
{
    if (!epoch.wanted || !epoch.wanted(e)) {
        tt_net_epoch_begins(e, false);
    }
}

void tt_net_epoch_begins(uint32_t e, bool is_made)
{
    if (e <= epoch.now) {
        return;
    }
    epoch.now = e;
    tt_net_note_epoch(e, is_made);
    for (GSList *i = all_nets; i; i = i->next) {
        TtNet *n = i->data;

        /* Noted as delivered, and not in the state of the NIC. */
        if (n->queued) {
            keep(n, n->queued);
        }
        if (n->conn) {
            tt_net_conn_send_epoch(n->conn, e);
        }
        qemu_bh_schedule(n->release);
    }
}

/* The connection is open, or its peer knows of more. */
static void peer_epoch(void *opaque)
{
    TtNet *n = opaque;
    uint32_t theirs = n->conn ? tt_net_conn_epoch(n->conn) : 0;

    if (theirs > epoch.now) {
        want_epoch(theirs);
    } else if (theirs < epoch.now) {
        tt_net_conn_send_epoch(n->conn, epoch.now);
    }
}

bool tt_net_deliver_first(const char *netdev, const TtFrame *f)
{
    for (GSList *i = all_nets; i; i = i->next) {
        TtNet *n = i->data;

        if (!strcmp(n->nc.name, netdev)) {
            g_queue_push_tail(&n->held, copy_of(f));
            return true;
        }
    }
    return false;
}

/* ---- the backend ---- */

static void tell_state(void *opaque, const char *text)
{
    TtNet *n = opaque;

    qemu_set_info_str(&n->nc, "%s, %s", n->where, text);
}

static void tt_net_cleanup(NetClientState *nc)
{
    TtNet *n = net_of(nc);

    if (n->conn) {
        tt_net_conn_free(g_steal_pointer(&n->conn));
        qemu_purge_queued_packets(nc);      /* delivered() is not called later */
    }
    if (n->vm_state) {
        qemu_del_vm_change_state_handler(n->vm_state);
        qemu_bh_delete(n->release);
        timer_free(n->again);
    }
    all_nets = g_slist_remove(all_nets, n);
    g_queue_clear_full(&n->held, free_frame);
    tt_net_frames_taken(n->queued);
    g_clear_pointer(&n->queued, free_frame);
    g_free(n->where);
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
    if (!tt_group_name_is_fit(from->group)) {
        error_setg(errp, "the name of a group must have 1 to %d letters, digits, '.', "
                   "'_' and '-'", TT_GROUP_NAME_MAX);
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
    return true;
}

int net_init_tt(const Netdev *netdev, const char *name, NetClientState *peer,
                Error **errp)
{
    const NetdevTtOptions *from = &netdev->u.tt;
    TtNetConnOptions o = { .name = name };
    NetClientState *nc;
    TtNet *n;

    if (!parse_options(&o, from, errp)) {
        return -1;
    }
    nc = qemu_new_net_client(&tt_net_info, peer, "tt", name);
    n = net_of(nc);
    n->where = g_strdup_printf("group=%s,%s=%s", from->group, from->listen ? "listen" :
                               "connect", from->listen ?: from->connect);
    n->release = qemu_bh_new(release_held, n);
    n->again = timer_new_ms(QEMU_CLOCK_REALTIME, release_held, n);
    n->vm_state = qemu_add_vm_change_state_handler(vm_state_changed, n);
    g_queue_init(&n->held);
    all_nets = g_slist_append(all_nets, n);
    n->conn = tt_net_conn_new(&o, &conn_ops, n, errp);
    if (!n->conn) {
        qemu_del_net_client(nc);
        return -1;
    }
    return 0;
}
