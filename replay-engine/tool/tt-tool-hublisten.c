/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Sockets that listen for members of a group: of tt hub, and of tt group live in the place of
 * a VM. As QEMU does for its own, they listen at all numbers that the name of a host has.
 */
#include "tt-tool-hub.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#define BACKLOG 64              /* as a netdev tt has */

/* As close, and errno stays. */
static int give_up(int fd)
{
    int error = errno;

    close(fd);
    errno = error;
    return -1;
}

/* Port 0: that of @at. */
static HubNumber number_of(const struct addrinfo *at, in_port_t port)
{
    HubNumber where = { 0 };

    memcpy(&where, at->ai_addr, MIN(at->ai_addrlen, sizeof(where)));
    if (port && at->ai_family == AF_INET) {
        where.v4.sin_port = port;
    } else if (port) {
        where.v6.sin6_port = port;
    }
    return where;
}

static socklen_t len_of(const HubNumber *where)
{
    return where->any.sa_family == AF_INET ? sizeof(where->v4) : sizeof(where->v6);
}

static bool is_any6(const HubNumber *n)
{
    return n->any.sa_family == AF_INET6 && IN6_IS_ADDR_UNSPECIFIED(&n->v6.sin6_addr);
}

bool hub_number_covers(const HubNumber *has, bool takes_ipv4, const HubNumber *where)
{
    if (where->any.sa_family == AF_INET && takes_ipv4 && is_any6(has)) {
        return has->v6.sin6_port == where->v4.sin_port;
    }
    if (has->any.sa_family != where->any.sa_family) {
        return false;
    }
    if (has->any.sa_family == AF_INET) {
        return has->v4.sin_port == where->v4.sin_port &&
            (has->v4.sin_addr.s_addr == htonl(INADDR_ANY) ||
             has->v4.sin_addr.s_addr == where->v4.sin_addr.s_addr);
    }
    return has->v6.sin6_port == where->v6.sin6_port &&
        (is_any6(has) || (IN6_ARE_ADDR_EQUAL(&has->v6.sin6_addr, &where->v6.sin6_addr) &&
                          has->v6.sin6_scope_id == where->v6.sin6_scope_id));
}

/* *@is_6only: not by IPv4, where the port is in use. QEMU does the same. */
static int listen_number(const HubNumber *where, bool *is_6only)
{
    int fd = socket(where->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    const int on = 1, off = 0;
    int failed;

    *is_6only = false;
    if (fd < 0) {
        return -1;
    }
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
    failed = bind(fd, &where->any, len_of(where));
    if (failed && errno == EADDRINUSE && is_any6(where)) {
        *is_6only = true;
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
        failed = bind(fd, &where->any, len_of(where));
    }
    return !failed && listen(fd, BACKLOG) == 0 ? fd : give_up(fd);
}

static bool takes_ipv4(int fd)
{
    int is_6only = 1;
    socklen_t len = sizeof(is_6only);

    return !getsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &is_6only, &len) && !is_6only;
}

/* Does @fd listen at @where, perhaps at all numbers of its kind, or of both? */
static bool covers(int fd, const HubNumber *where)
{
    HubNumber has = { 0 };
    socklen_t len = sizeof(has);

    return !getsockname(fd, &has.any, &len) &&
        hub_number_covers(&has, takes_ipv4(fd), where);
}

static void warn(const HubNumber *where, const char *how, const char *why)
{
    char host[NI_MAXHOST], port[NI_MAXSERV];

    if (!getnameinfo(&where->any, len_of(where), host, sizeof(host), port, sizeof(port),
                     NI_NUMERICHOST | NI_NUMERICSERV)) {
        tool_complain("%s at %s, port %s: %s", how, host, port, why);
    }
}

/* Two names may have the same number. */
static bool is_held(const HubListener *l, const HubNumber *where)
{
    for (; l; l = l->before) {
        for (unsigned i = 0; i < l->n; i++) {
            if (covers(l->fd[i], where)) {
                return true;
            }
        }
    }
    return false;
}

static in_port_t port_of(int fd)
{
    HubNumber where = { 0 };
    socklen_t len = sizeof(where);

    if (getsockname(fd, &where.any, &len)) {
        return 0;
    }
    return where.any.sa_family == AF_INET ? where.v4.sin_port : where.v6.sin6_port;
}

/* Has this hub that port by IPv4, at some number? */
static bool has_ipv4(const HubListener *l, in_port_t port)
{
    for (; l; l = l->before) {
        for (unsigned i = 0; i < l->n; i++) {
            HubNumber has = { 0 };
            socklen_t len = sizeof(has);

            if (!getsockname(l->fd[i], &has.any, &len) && has.any.sa_family == AF_INET &&
                has.v4.sin_port == port) {
                return true;
            }
        }
    }
    return false;
}

/* -1: errno. */
static int listen_one(const HubListener *l, const HubNumber *where)
{
    bool is_6only;
    int fd = listen_number(where, &is_6only);

    if (fd >= 0 && is_6only && !has_ipv4(l, where->v6.sin6_port)) {
        warn(where, "listening for IPv6 only", "by IPv4 the port is in use");
    }
    return fd;
}

static const char *listen_inet(HubListener *l, const TtAddress *a)
{
    struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE };
    struct addrinfo *found;
    int error = getaddrinfo(a->host, a->port, &hints, &found);
    bool is_somewhere = false, has_missed = false;
    HubNumber missed;

    if (error) {
        return error == EAI_SYSTEM ? g_strerror(errno) : gai_strerror(error);
    }
    error = EADDRNOTAVAIL;
    for (struct addrinfo *at = found; at && l->n < HUB_SOCKETS_MAX; at = at->ai_next) {
        HubNumber where = number_of(at, l->n ? port_of(l->fd[0]) : 0);
        bool is_there = is_held(l, &where);
        int fd = is_there ? -1 : listen_one(l, &where);

        if (fd >= 0) {
            l->fd[l->n++] = fd;
        } else if (!is_there) {
            error = errno;
            has_missed = true;
            missed = where;
        }
        is_somewhere |= is_there || fd >= 0;
    }
    freeaddrinfo(found);
    if (is_somewhere && has_missed) {
        warn(&missed, "not listening", g_strerror(error));
    }
    return is_somewhere ? NULL : g_strerror(error);
}

const char *hub_listen(HubListener *l, const TtAddress *a, GUnixFDSourceFunc came,
                       void *opaque)
{
    const char *why = NULL;

    if (a->is_unix) {
        why = tt_listen_unix(&l->place, a->path, BACKLOG);
        l->fd[0] = l->place.fd;
        l->n = !why;
    } else {
        why = listen_inet(l, a);
    }
    for (unsigned i = 0; i < l->n; i++) {
        l->tag[i] = g_unix_fd_add(l->fd[i], G_IO_IN, came, opaque);
    }
    return why;
}

void hub_listen_end(HubListener *l)
{
    tt_listen_unix_end(&l->place);
    while (l->n) {
        l->n--;
        g_source_remove(l->tag[l->n]);
        close(l->fd[l->n]);
    }
}
