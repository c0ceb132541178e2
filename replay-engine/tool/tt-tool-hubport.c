/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tt hub: its ports. A frame that comes in by one leaves through those that it is for,
 * at the time that its fate says, or is lost.
 */
#include "tt-tool-hub.h"
#include "net-tt/tt-alive.h"

#include <errno.h>
#include <glib-unix.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#define PATIENCE_MS     10000           /* until a peer has said READY */
#define OUT_MAX         (4u << 20)      /* bytes that wait for a peer who is slow */
#define READS_AT_ONCE   8
#define PORT_INCIDENTS  (TT_BURST_MAX / 2)

struct HubPort {
    Hub *hub;
    unsigned number;            /* free again when its peer is gone */
    uint64_t peer;              /* never used again */
    bool is_member;             /* has said READY */
    int64_t came_us;            /* g_get_monotonic_time */
    TtBurst incidents;
    int fd;
    TtLink *link;
    guint read_tag, write_tag, patience_tag;
};

/* ---- a port goes ---- */

static void drop_tag(guint *tag)
{
    if (*tag) {
        g_source_remove(*tag);
        *tag = 0;
    }
}

/* With --once: the last member has left, and of those who were at the door none has come
 * in. */
static gboolean end_once(gpointer opaque)
{
    Hub *h = opaque;

    h->end_tag = 0;
    g_main_loop_quit(h->loop);
    return G_SOURCE_REMOVE;
}

static void close_port(HubPort *p)
{
    Hub *h = p->hub;

    drop_tag(&p->read_tag);
    drop_tag(&p->write_tag);
    drop_tag(&p->patience_tag);
    close(p->fd);
    tt_link_free(p->link);
    tt_places_forget(&h->places, p->number);
    tt_shape_left(&h->shape, p->number);
    h->ports[p->number] = NULL;
    h->n_ports--;
    if (p->is_member && !--h->n_members) {
        /* Whoever comes now may send again what had been sent: tt group live --exact. */
        memset(&h->heard, 0, sizeof(h->heard));
        memset(&h->told, 0, sizeof(h->told));
        if (h->is_for_once && h->loop) {
            h->end_tag = g_timeout_add(PATIENCE_MS, end_once, h);
        }
    }
    if (h->end_tag && !h->n_ports) {
        drop_tag(&h->end_tag);
        g_main_loop_quit(h->loop);
    }
    g_free(p);
}

/* ---- out ---- */

static gboolean can_write(gint fd, GIOCondition what, gpointer opaque);

/* What @link has to say, to one who is left then. Nobody waits for him. */
static void say_last(int fd, TtLink *link)
{
    size_t len;
    const uint8_t *out = tt_link_out(link, &len);

    if (len && send(fd, out, len, MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
        return;                         /* it has gone, or does not read */
    }
}

/* False: the port is gone. */
static bool flush_port(HubPort *p)
{
    const uint8_t *out;
    size_t len;

    while (out = tt_link_out(p->link, &len), len) {
        ssize_t n = send(p->fd, out, len, MSG_NOSIGNAL | MSG_DONTWAIT);

        if (n >= 0) {
            tt_link_sent(p->link, n);
        } else if (errno == EAGAIN) {
            if (!p->write_tag) {
                p->write_tag = g_unix_fd_add(p->fd, G_IO_OUT, can_write, p);
            }
            return true;
        } else if (errno != EINTR) {
            close_port(p);
            return false;
        }
    }
    return true;
}

static gboolean can_write(gint fd, GIOCondition what, gpointer opaque)
{
    HubPort *p = opaque;

    p->write_tag = 0;
    flush_port(p);
    return G_SOURCE_REMOVE;
}

void hub_send(Hub *h, const HubFrame *w)
{
    HubPort *p = h->ports[w->to];
    size_t len;

    if (!p || p->peer != w->peer) {
        hub_settle(h, w, HUB_PEER_GONE);
        return;
    }
    tt_link_out(p->link, &len);
    if (len > OUT_MAX) {
        hub_settle(h, w, HUB_PEER_SLOW);
        return;
    }
    hub_settle(h, w, TT_FATE_GOES);
    tt_link_send(p->link, &w->frame);
    if (!p->write_tag) {
        flush_port(p);
    }
}

/* ---- where a frame goes ---- */

static void decide(Hub *h, unsigned from, uint64_t number, unsigned to, const TtFrame *f)
{
    uint64_t now = hub_now_ns();
    HubFrame w = {
        .came_ns = now, .at_ns = now, .from = from, .to = to,
        .peer = h->ports[to]->peer, .frame = *f,
    };
    TtFate fate = tt_shape_fate(&h->shape, from, number, to, f->len, now, &w.at_ns);

    if (fate != TT_FATE_GOES) {
        hub_settle(h, &w, fate);
    } else if (w.at_ns == now) {
        hub_send(h, &w);
    } else {
        hub_wait_for(h, &w);
    }
}

/* Is port @i one through which a frame for @to leaves? */
static bool is_way_out(const Hub *h, unsigned i, unsigned to)
{
    return h->ports[i] && tt_link_is_open(h->ports[i]->link) &&
           (to == TT_PORT_ALL || i == to);
}

static void drop_frame(HubPort *p, const TtFrame *f, unsigned fate)
{
    uint64_t now = hub_now_ns();

    hub_settle(p->hub, &(HubFrame) { .came_ns = now, .at_ns = now, .from = p->number,
                                     .to = p->number, .frame = *f }, fate);
}

static void frame_came(HubPort *p, const TtFrame *f)
{
    Hub *h = p->hub;
    unsigned from = p->number, to;
    uint64_t number;

    h->n_came++;
    if (!tt_heard_is_new(&h->heard, f)) {
        drop_frame(p, f, HUB_KNOWS);
        hub_say(h, "a frame is dropped: its number %" PRIu64 " was seen before, or it is "
                   "far too late", f->seq);
        return;
    }
    /* Only a frame that is new may say where its sender is. */
    to = tt_places_pass(&h->places, f->data, from);
    number = tt_shape_came(&h->shape, from);
    for (unsigned i = 0; i < TT_SHAPE_PORTS_MAX; i++) {
        if (i != from && is_way_out(h, i, to)) {
            decide(h, from, number, i, f);
        }
    }
}

/* ---- checkpoints and incidents of the group ---- */

/* All other members are told at once: of an incident, or of the latest checkpoint
 * (NULL). It is in order with the frames of its sender that come after it. */
static void tell_others(HubPort *p, const TtIncident *incident)
{
    Hub *h = p->hub;

    for (unsigned i = 0; i < TT_SHAPE_PORTS_MAX; i++) {
        HubPort *to = h->ports[i];
        size_t waiting = 0;

        if (to && to != p && to->is_member) {
            tt_link_out(to->link, &waiting);
            if (waiting > 2 * OUT_MAX) {        /* it may not be left out */
                hub_say(h, "port %u is closed: its peer does not read", i);
                close_port(to);
                continue;
            }
            if (incident) {
                tt_link_send_incident(to->link, incident);
            } else {
                tt_link_send_epoch(to->link, h->epoch);
            }
            if (!to->write_tag) {
                flush_port(to);
            }
        }
    }
}

/* Members that come later are told when they come. */
static void pass_epoch_on(HubPort *p)
{
    if (tt_link_epoch(p->link) > p->hub->epoch) {
        p->hub->epoch = tt_link_epoch(p->link);
        tell_others(p, NULL);
    }
}

/* Each in its turn, between the frames. Of more than members can make only the last of what
 * came at once is passed on: a peer may not fill what waits for others. */
static void epoch_came(HubPort *p, const TtFrame *f)
{
    if (f->epoch > p->hub->epoch &&
        !tt_burst_is_over(&p->hub->checkpoints, TT_BURST_MAX, g_get_monotonic_time() / 1000)) {
        p->hub->epoch = f->epoch;
        tell_others(p, NULL);
    }
}

/* One goes round the group once. Whoever reports more than members take, by however many
 * connections, may not fill the memory of the hub, and so close the ports of those who do not
 * read for a moment. One port alone leaves something for the incidents of others. */
static void incident_came(HubPort *p, const TtFrame *f)
{
    int64_t now_ms = g_get_monotonic_time() / 1000;
    TtIncident i;

    if (!tt_heard_is_new(&p->hub->told, f) || tt_incident_get(&i, f, NULL)) {
        return;
    }
    if (tt_burst_is_over(&p->incidents, PORT_INCIDENTS, now_ms) ||
        tt_burst_is_over(&p->hub->incidents, TT_BURST_MAX, now_ms)) {
        hub_say(p->hub, "an incident that port %u reports is dropped: there are too many",
                p->number);
        return;
    }
    tell_others(p, &i);
}

/* ---- in ---- */

static bool is_complete(Hub *h)
{
    if (!h->members_max || h->n_members < h->members_max) {
        return false;
    }
    hub_say(h, "a peer is refused: the hub has its %u members (--members)", h->n_members);
    return true;
}

/* Before its first frame goes anywhere: the hub may not end by what becomes of that. False:
 * the port is gone. */
static bool let_in(HubPort *p)
{
    if (is_complete(p->hub)) {
        tt_link_refuse(p->link, TT_REFUSED_HAS_MEMBERS);
        say_last(p->fd, p->link);
        close_port(p);
        return false;
    }
    drop_tag(&p->patience_tag);
    drop_tag(&p->hub->end_tag);
    p->is_member = true;
    p->hub->n_members++;
    if (p->hub->epoch) {
        tt_link_send_epoch(p->link, p->hub->epoch);
    }
    return true;
}

/* False: the port is gone. */
static bool take(HubPort *p, const uint8_t *bytes, size_t len)
{
    TtFrame f;
    TtDiag diag;
    TtStatus st;

    tt_link_put(p->link, bytes, len);
    if (!p->is_member && tt_link_meet(p->link, NULL) == TT_OK && !let_in(p)) {
        return false;
    }
    while ((st = tt_link_next(p->link, &f, &diag)) == TT_OK || st == TT_ERR_MISMATCH) {
        if (st == TT_OK && f.is_incident) {
            incident_came(p, &f);
        } else if (st == TT_OK && f.is_epoch) {
            epoch_came(p, &f);
        } else if (st == TT_OK) {
            frame_came(p, &f);
        } else {
            hub_say(p->hub, "a frame of port %u is dropped: %s", p->number, diag.text);
        }
    }
    pass_epoch_on(p);
    if (st != TT_END) {
        hub_say(p->hub, "port %u is closed: %s", p->number, diag.text);
        say_last(p->fd, p->link);               /* READY, to one with another key */
        close_port(p);
        return false;
    }
    return flush_port(p);                   /* READY */
}

static gboolean can_read(gint fd, GIOCondition what, gpointer opaque)
{
    static uint8_t bytes[TT_LINK_PUT_MAX];
    HubPort *p = opaque;

    for (unsigned i = 0; i < READS_AT_ONCE; i++) {
        ssize_t n = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT);

        if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
            break;
        }
        if (n <= 0) {
            close_port(p);
            return G_SOURCE_REMOVE;
        }
        if (!take(p, bytes, n)) {
            return G_SOURCE_REMOVE;
        }
    }
    return G_SOURCE_CONTINUE;
}

static gboolean lose_patience(gpointer opaque)
{
    HubPort *p = opaque;

    p->patience_tag = 0;
    hub_say(p->hub, "port %u is closed: its peer has not introduced itself within %d s",
            p->number, PATIENCE_MS / 1000);
    close_port(p);
    return G_SOURCE_REMOVE;
}

bool hub_drop_silent(Hub *h)
{
    HubPort *oldest = NULL;

    for (unsigned i = 0; i < TT_SHAPE_PORTS_MAX; i++) {
        HubPort *p = h->ports[i];

        if (p && !p->is_member && (!oldest || p->came_us < oldest->came_us)) {
            oldest = p;
        }
    }
    if (oldest) {
        hub_say(h, "port %u is closed: its peer has not introduced itself, and the hub is "
                "full", oldest->number);
        close_port(oldest);
    }
    return oldest;
}

/* It is closed, and hears why. @o: with a nonce of its own. */
static void refuse(const TtLinkOptions *o, int fd, TtRefusal why)
{
    TtLink *link = tt_link_new(o);

    tt_link_refuse(link, why);
    say_last(fd, link);
    tt_link_free(link);
    close(fd);
}

void hub_connected(Hub *h, int fd)
{
    TtLinkOptions o = { .group = h->group, .key = h->key, .key_len = h->key_len,
                        .is_hub = true };
    HubPort *p;
    unsigned i = 0;

    if (getrandom(o.nonce, sizeof(o.nonce), 0) != sizeof(o.nonce)) {
        hub_say(h, "a peer is refused: there are no random numbers for it");
        close(fd);
        return;
    }
    if (is_complete(h)) {
        refuse(&o, fd, TT_REFUSED_HAS_MEMBERS);
        return;
    }
    if (h->n_ports == TT_SHAPE_PORTS_MAX) {
        hub_drop_silent(h);
    }
    while (i < TT_SHAPE_PORTS_MAX && h->ports[i]) {
        i++;
    }
    if (i == TT_SHAPE_PORTS_MAX) {
        hub_say(h, "a peer is refused: the hub already has %u", i);
        refuse(&o, fd, TT_REFUSED_IS_FULL);
        return;
    }
    p = g_new0(HubPort, 1);
    *p = (HubPort) { .hub = h, .number = i, .peer = h->n_peers++, .fd = fd,
                      .came_us = g_get_monotonic_time(), .link = tt_link_new(&o) };
    h->ports[i] = p;
    h->n_ports++;
    p->read_tag = g_unix_fd_add(fd, G_IO_IN | G_IO_HUP, can_read, p);
    p->patience_tag = g_timeout_add(PATIENCE_MS, lose_patience, p);
    flush_port(p);
}

/* ---- the hub ---- */

static gboolean look_for_silent(gpointer opaque)
{
    Hub *h = opaque;

    for (unsigned i = 0; i < TT_SHAPE_PORTS_MAX; i++) {
        if (h->ports[i] && tt_alive_is_silent(h->ports[i]->fd)) {
            hub_say(h, "port %u is closed: the host of its peer does not answer", i);
            close_port(h->ports[i]);
        }
    }
    return G_SOURCE_CONTINUE;
}

void hub_init(Hub *h)
{
    hub_wait_init(h);
    h->silence_tag = g_timeout_add_seconds(TT_ALIVE_ASK_S, look_for_silent, h);
}

void hub_end(Hub *h)
{
    drop_tag(&h->end_tag);
    for (unsigned i = 0; i < TT_SHAPE_PORTS_MAX; i++) {
        if (h->ports[i]) {
            close_port(h->ports[i]);
        }
    }
    drop_tag(&h->silence_tag);
    hub_wait_end(h);
}
