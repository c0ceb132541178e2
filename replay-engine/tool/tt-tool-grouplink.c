/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The end of a link of a group, in this program: sockets, on glib's main loop. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE             /* accept4, POLLRDHUP */
#endif
#include "tt-tool-grouplink.h"
#include "tt-tool-hub.h"
#include "tt-tool-qmp.h"
#include "net-tt/tt-alive.h"
#include "net-tt/door/tt-door.h"

#include <errno.h>
#include <glib-unix.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#define RETRY_MS    200
#define CONNECT_MS  3000            /* a first SYN may be lost */
#define SAY_US      5000000         /* between two sentences */
#define LAST_READS  4096            /* of a peer that has gone */
#define OUT_MAX     (4u << 20)      /* bytes that wait for a peer who does not read */

struct GroupLink {
    GroupLinkCame *came;
    void *opaque;
    char *group, *where;
    int64_t said_us;
    uint8_t *key;
    size_t key_len;
    TtAddress address;
    bool listens;
    HubListener listener;
    TtDoor *door;
    int fd;                         /* -1: none */
    TtLink *link;                   /* open; NULL: there is no peer */
    uint32_t epoch;
    guint retry_tag, read_tag, write_tag, silence_tag;
};

static void drop_tag(guint *tag)
{
    if (*tag) {
        g_source_remove(*tag);
        *tag = 0;
    }
}

/* ---- the peer goes ---- */

static gboolean connect_again(gpointer opaque);

static void arm_retry(GroupLink *l)
{
    if (!l->listens && !l->retry_tag) {
        l->retry_tag = g_timeout_add(RETRY_MS, connect_again, l);
    }
}

static void close_peer(GroupLink *l)
{
    drop_tag(&l->read_tag);
    drop_tag(&l->write_tag);
    drop_tag(&l->silence_tag);
    if (l->fd >= 0) {
        close(l->fd);
        l->fd = -1;
    }
    g_clear_pointer(&l->link, tt_link_free);
    arm_retry(l);
}

/* One sentence now and then. */
static void refuse(GroupLink *l, const char *why)
{
    if (!l->said_us || g_get_monotonic_time() - l->said_us > SAY_US) {
        l->said_us = g_get_monotonic_time();
        tool_complain("a peer at %s is refused: %s", l->where, why);
    }
}

/* ---- bytes ---- */

static gboolean can_write(gint fd, GIOCondition what, gpointer opaque);

static bool flush(GroupLink *l)
{
    const uint8_t *out;
    size_t len;

    while (out = tt_link_out(l->link, &len), len) {
        ssize_t n = send(l->fd, out, len, MSG_NOSIGNAL | MSG_DONTWAIT);

        if (n >= 0) {
            tt_link_sent(l->link, n);
        } else if (errno == EAGAIN) {
            if (!l->write_tag) {
                l->write_tag = g_unix_fd_add(l->fd, G_IO_OUT, can_write, l);
            }
            return true;
        } else if (errno != EINTR) {
            close_peer(l);
            return false;
        }
    }
    return true;
}

static gboolean can_write(gint fd, GIOCondition what, gpointer opaque)
{
    GroupLink *l = opaque;

    l->write_tag = 0;
    flush(l);
    return G_SOURCE_REMOVE;
}

/* What came. False: the peer is gone. */
static bool drain(GroupLink *l)
{
    TtFrame f;
    TtDiag diag;
    TtStatus st;

    while ((st = tt_link_next(l->link, &f, &diag)) == TT_OK || st == TT_ERR_MISMATCH) {
        if (st == TT_OK && !f.is_incident) {
            l->came(l->opaque, &f);
            if (!l->link) {
                return false;           /* it answered, and the peer was gone */
            }
        }
    }
    l->epoch = MAX(l->epoch, tt_link_epoch(l->link));
    if (st != TT_END) {
        refuse(l, diag.text);
        close_peer(l);
        return false;
    }
    return true;
}

static gboolean can_read(gint fd, GIOCondition what, gpointer opaque)
{
    static uint8_t bytes[TT_LINK_PUT_MAX];
    GroupLink *l = opaque;
    ssize_t n = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT);

    if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
        return G_SOURCE_CONTINUE;
    }
    if (n <= 0) {
        close_peer(l);                  /* it removes the source, too */
        return G_SOURCE_CONTINUE;
    }
    tt_link_put(l->link, bytes, n);
    drain(l);
    return G_SOURCE_CONTINUE;
}

/* ---- a peer comes ---- */

static gboolean listen_for_it(gpointer opaque)
{
    GroupLink *l = opaque;

    if (!tt_alive_is_silent(l->fd)) {
        return G_SOURCE_CONTINUE;
    }
    l->silence_tag = 0;
    close_peer(l);
    return G_SOURCE_REMOVE;
}

/* Is there no peer? One that has gone has said all that it had to say, and is left. */
static bool has_place(GroupLink *l)
{
    struct pollfd p = { .fd = l->fd, .events = POLLRDHUP };

    if (l->link && poll(&p, 1, 0) == 1 && p.revents & (POLLRDHUP | POLLHUP | POLLERR)) {
        for (unsigned i = 0; l->link && i < LAST_READS; i++) {
            can_read(l->fd, G_IO_IN, l);
        }
        if (l->link) {
            close_peer(l);
        }
    }
    return !l->link;
}

static void enters(void *opaque, int fd, TtLink *link)
{
    GroupLink *l = opaque;

    if (!has_place(l)) {
        tt_door_refuse(l->door, fd, link, TT_REFUSED_HAS_PEER);
        return;
    }
    l->fd = fd;
    l->link = link;
    l->read_tag = g_unix_fd_add(fd, G_IO_IN, can_read, l);
    l->silence_tag = g_timeout_add_seconds(TT_ALIVE_ASK_S, listen_for_it, l);
    drain(l);
}

static void leaves(void *opaque, const char *why, bool is_refused)
{
    if (why) {
        refuse(opaque, why);
    }
    arm_retry(opaque);
}

static const TtDoorOps door_ops = { .enters = enters, .leaves = leaves };

static gboolean peer_came(gint fd, GIOCondition what, gpointer opaque)
{
    GroupLink *l = opaque;
    int peer = accept4(fd, NULL, NULL, SOCK_CLOEXEC);

    if (peer >= 0 && has_place(l)) {
        tt_door_came(l->door, peer);
    } else if (peer >= 0) {
        tt_door_refuse(l->door, peer, NULL, TT_REFUSED_HAS_PEER);    /* as a VM does */
    } else if (errno == EMFILE || errno == ENFILE) {
        g_usleep(10000);
    }
    return G_SOURCE_CONTINUE;
}

static int connect_inet(const TtAddress *a)
{
    struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *found;
    int fd = -1;

    errno = EADDRNOTAVAIL;
    if (getaddrinfo(a->host, a->port, &hints, &found)) {
        return -1;
    }
    for (struct addrinfo *at = found; at && fd < 0; at = at->ai_next) {
        fd = tool_inet_connect(at, CONNECT_MS);
    }
    freeaddrinfo(found);
    return fd;
}

static gboolean connect_again(gpointer opaque)
{
    GroupLink *l = opaque;
    int fd = l->address.is_unix ? tool_unix_connect(l->address.path) :
        connect_inet(&l->address);

    if (fd < 0) {
        return G_SOURCE_CONTINUE;
    }
    l->retry_tag = 0;
    tt_door_came(l->door, fd);
    return G_SOURCE_REMOVE;
}

/* When the main loop runs, which answers the peer. */
static gboolean connect_first(gpointer opaque)
{
    GroupLink *l = opaque;

    l->retry_tag = 0;
    if (connect_again(l)) {
        arm_retry(l);
    }
    return G_SOURCE_REMOVE;
}

/* ---- it ---- */

GroupLink *group_link_new(const GroupMeeting *m, GroupLinkCame *came, void *opaque)
{
    GroupLink *l = g_new0(GroupLink, 1);
    const char *why;
    TtDiag diag;

    *l = (GroupLink) { .came = came, .opaque = opaque, .listens = m->listens, .fd = -1,
                       .group = g_strdup(m->group), .where = g_strdup(m->address) };
    if (tt_address_parse(&l->address, m->address, &diag) ||
        (m->key_file && tt_group_key_load(m->key_file, &l->key, &l->key_len, &diag)) ||
        tt_address_check(&l->address, l->key, &diag)) {
        tool_problem(&diag);
        group_link_free(l);
        return NULL;
    }
    l->door = tt_door_new(&(TtLinkOptions) { .group = l->group, .key = l->key,
                                                .key_len = l->key_len }, &door_ops, l);
    if (!m->listens) {
        l->retry_tag = g_timeout_add(1, connect_first, l);
        return l;
    }
    why = hub_listen(&l->listener, &l->address, peer_came, l);
    if (why) {
        tool_complain("cannot listen at %s: %s", m->address, why);
        group_link_free(l);
        return NULL;
    }
    return l;
}

void group_link_free(GroupLink *l)
{
    if (!l) {
        return;
    }
    tt_door_free(l->door);
    close_peer(l);
    drop_tag(&l->retry_tag);
    hub_listen_end(&l->listener);
    g_free(l->group);
    g_free(l->where);
    g_free(l->key);
    g_free(l);
}

bool group_link_is_open(const GroupLink *l)
{
    return l->link && tt_link_is_open(l->link);
}

uint32_t group_link_epoch(const GroupLink *l)
{
    return l->epoch;
}

bool group_link_send(GroupLink *l, const TtFrame *f)
{
    size_t waiting;

    if (!group_link_is_open(l)) {
        return false;
    }
    tt_link_out(l->link, &waiting);
    if (waiting > OUT_MAX) {
        return false;
    }
    tt_link_send(l->link, f);
    return l->write_tag || flush(l);
}
