/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The door of a group: see the header. What this side says up to READY fits into the buffer of
 * any socket, so nobody waits to write.
 */
#include "net-tt/door/tt-door.h"
#include "net-tt/tt-alive.h"

#include <errno.h>
#include <glib-unix.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#define PATIENCE_MS     10000   /* until it has said READY: the sentence says so */
/* A member needs a round trip to say READY. In that time no more strangers than this are let
 * in, as long as it takes less than some milliseconds; else the member tries again. */
#define GUESTS_MAX      64
#define READ_BYTES      4096

/* One who waits. */
typedef struct Guest {
    TtDoor *door;
    int fd;                     /* -1: not its own any more */
    TtLink *link;
    guint read_tag, patience_tag;
} Guest;

struct TtDoor {
    TtLinkOptions o;
    const TtDoorOps *ops;
    void *opaque;
    GQueue guests;              /* of Guest, in the order in which they came */
};

static void remove_guest(Guest *g)
{
    g_queue_remove(&g->door->guests, g);
    if (g->read_tag) {
        g_source_remove(g->read_tag);
    }
    if (g->patience_tag) {
        g_source_remove(g->patience_tag);
    }
    if (g->fd >= 0) {
        close(g->fd);
    }
    tt_link_free(g->link);
    g_free(g);
}

static void turn_away(Guest *g, const char *why)
{
    TtDoor *d = g->door;
    bool is_refused = tt_link_is_refused(g->link);

    remove_guest(g);
    d->ops->leaves(d->opaque, why, is_refused);
}

static void let_in(Guest *g)
{
    TtDoor *d = g->door;
    TtLink *link = g_steal_pointer(&g->link);
    int fd = g->fd;

    g->fd = -1;
    remove_guest(g);
    d->ops->enters(d->opaque, fd, link);
}

/* All that this side has to say. False: it cannot. */
static bool say_all(int fd, TtLink *link)
{
    const uint8_t *out;
    size_t len;

    while (out = tt_link_out(link, &len), len) {
        ssize_t n = send(fd, out, len, MSG_NOSIGNAL | MSG_DONTWAIT);

        if (n < 0 && errno != EINTR) {
            return false;
        }
        tt_link_sent(link, MAX(n, 0));
    }
    return true;
}

static gboolean can_read(gint fd, GIOCondition what, gpointer opaque)
{
    Guest *g = opaque;
    uint8_t bytes[READ_BYTES];
    ssize_t n = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT);
    TtStatus st = TT_END;
    TtDiag diag = { 0 };
    bool can_say;

    if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
        return G_SOURCE_CONTINUE;
    }
    if (n > 0) {
        tt_link_put(g->link, bytes, n);
        st = tt_link_meet(g->link, &diag);
    }
    /* Each says READY, also to one with another key, who hears of it so. To one who does not
     * listen any more nothing can be said, but it may have said why. */
    can_say = n > 0 && say_all(g->fd, g->link);
    if (n > 0 && st == TT_END) {
        return G_SOURCE_CONTINUE;
    }
    g->read_tag = 0;
    if (can_say && st == TT_OK) {
        let_in(g);
    } else {
        turn_away(g, st < 0 ? diag.text : NULL);
    }
    return G_SOURCE_REMOVE;
}

static gboolean lose_patience(gpointer opaque)
{
    Guest *g = opaque;

    g->patience_tag = 0;
    turn_away(g, "it did not introduce itself within 10 s");
    return G_SOURCE_REMOVE;
}

void tt_door_came(TtDoor *d, int fd)
{
    TtLinkOptions o = d->o;
    const int one = 1;
    Guest *g;

    if (getrandom(o.nonce, sizeof(o.nonce), 0) != sizeof(o.nonce)) {
        close(fd);
        d->ops->leaves(d->opaque, "there are no random numbers for the connection",
                       false);
        return;
    }
    if (d->guests.length == GUESTS_MAX) {
        turn_away(g_queue_peek_head(&d->guests), "it has not introduced itself, and gives way "
                  "to another");
    }
    g_unix_set_fd_nonblocking(fd, true, NULL);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    tt_alive_keep(fd);
    g = g_new0(Guest, 1);
    *g = (Guest) { .door = d, .fd = fd, .link = tt_link_new(&o) };
    g_queue_push_tail(&d->guests, g);
    say_all(fd, g->link);               /* who has gone may have said why */
    g->read_tag = g_unix_fd_add(fd, G_IO_IN | G_IO_HUP, can_read, g);
    g->patience_tag = g_timeout_add(PATIENCE_MS, lose_patience, g);
}

void tt_door_refuse(TtDoor *d, int fd, TtLink *link, TtRefusal why)
{
    TtLinkOptions o = d->o;

    if (!link && getrandom(o.nonce, sizeof(o.nonce), 0) == sizeof(o.nonce)) {
        link = tt_link_new(&o);
    }
    if (link) {
        tt_link_refuse(link, why);
        say_all(fd, link);
    }
    tt_link_free(link);
    close(fd);
}

TtDoor *tt_door_new(const TtLinkOptions *o, const TtDoorOps *ops, void *opaque)
{
    TtDoor *d = g_new0(TtDoor, 1);

    d->o = *o;
    d->ops = ops;
    d->opaque = opaque;
    return d;
}

void tt_door_free(TtDoor *d)
{
    if (d) {
        while (d->guests.length) {
            remove_guest(g_queue_peek_head(&d->guests));
        }
        g_free(d);
    }
}
