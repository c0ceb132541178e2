/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Sockets that listen for members of a group: of tt hub, and of tt group live in the place of
 * a VM. As QEMU does for its own, they listen at all numbers that the name of a host has.
 */
#include "tt-tool-hub.h"
#include "net-tt/tt-alive.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define BACKLOG 64              /* as a netdev tt has */

static bool is_socket(const char *path)
{
    struct stat st;

    return lstat(path, &st) == 0 && S_ISSOCK(st.st_mode);
}

/* As close, and errno stays. */
static int give_up(int fd)
{
    int error = errno;

    close(fd);
    errno = error;
    return -1;
}

static int listen_unix(const TtAddress *a)
{
    struct sockaddr_un where = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    bool is_bound;

    if (fd < 0) {
        return -1;
    }
    g_strlcpy(where.sun_path, a->path, sizeof(where.sun_path));
    is_bound = bind(fd, (struct sockaddr *)&where, sizeof(where)) == 0;
    if (!is_bound && errno == EADDRINUSE && is_socket(a->path)) {
        is_bound = tt_alive_is_left(a->path) && unlink(a->path) == 0 &&
            bind(fd, (struct sockaddr *)&where, sizeof(where)) == 0;
        if (!is_bound) {
            errno = EADDRINUSE;
        }
    }
    return is_bound && listen(fd, BACKLOG) == 0 ? fd : give_up(fd);
}

typedef union Number {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
} Number;

/* Port 0: that of @at. */
static Number number_of(const struct addrinfo *at, in_port_t port)
{
    Number where = { 0 };

    memcpy(&where, at->ai_addr, MIN(at->ai_addrlen, sizeof(where)));
    if (port && at->ai_family == AF_INET) {
        where.v4.sin_port = port;
    } else if (port) {
        where.v6.sin6_port = port;
    }
    return where;
}

static int listen_number(const Number *where)
{
    int fd = socket(where->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    socklen_t len = where->any.sa_family == AF_INET ? sizeof(where->v4) : sizeof(where->v6);
    int one = 1;

    if (fd < 0) {
        return -1;
    }
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    return bind(fd, &where->any, len) == 0 && listen(fd, BACKLOG) == 0 ? fd : give_up(fd);
}

/* Does @fd listen at @where, perhaps at all numbers of its kind? */
static bool covers(int fd, const Number *where)
{
    Number has = { 0 };
    socklen_t len = sizeof(has);

    if (getsockname(fd, &has.any, &len) || has.any.sa_family != where->any.sa_family) {
        return false;
    }
    if (has.any.sa_family == AF_INET) {
        return has.v4.sin_port == where->v4.sin_port &&
            (has.v4.sin_addr.s_addr == htonl(INADDR_ANY) ||
             has.v4.sin_addr.s_addr == where->v4.sin_addr.s_addr);
    }
    return has.v6.sin6_port == where->v6.sin6_port &&
        (IN6_IS_ADDR_UNSPECIFIED(&has.v6.sin6_addr) ||
         IN6_ARE_ADDR_EQUAL(&has.v6.sin6_addr, &where->v6.sin6_addr));
}

static void warn(const Number *where, const char *why)
{
    socklen_t len = where->any.sa_family == AF_INET ? sizeof(where->v4) : sizeof(where->v6);
    char host[NI_MAXHOST], port[NI_MAXSERV];

    if (!getnameinfo(&where->any, len, host, sizeof(host), port, sizeof(port),
                     NI_NUMERICHOST | NI_NUMERICSERV)) {
        tool_complain("not listening at %s, port %s: %s", host, port, why);
    }
}

/* Two names may have the same number. */
static bool is_held(const HubListener *l, const Number *where)
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
    Number where = { 0 };
    socklen_t len = sizeof(where);

    if (getsockname(fd, &where.any, &len)) {
        return 0;
    }
    return where.any.sa_family == AF_INET ? where.v4.sin_port : where.v6.sin6_port;
}

static const char *listen_inet(HubListener *l, const TtAddress *a)
{
    struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE };
    struct addrinfo *found;
    int error = getaddrinfo(a->host, a->port, &hints, &found);
    bool is_somewhere = false, has_missed = false;
    Number missed;

    if (error) {
        return error == EAI_SYSTEM ? g_strerror(errno) : gai_strerror(error);
    }
    error = EADDRNOTAVAIL;
    for (struct addrinfo *at = found; at && l->n < HUB_SOCKETS_MAX; at = at->ai_next) {
        Number where = number_of(at, l->n ? port_of(l->fd[0]) : 0);
        bool is_there = is_held(l, &where);
        int fd = is_there ? -1 : listen_number(&where);

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
        warn(&missed, g_strerror(error));
    }
    return is_somewhere ? NULL : g_strerror(error);
}

const char *hub_listen(HubListener *l, const TtAddress *a, GUnixFDSourceFunc came,
                       void *opaque)
{
    const char *why = NULL;

    if (a->is_unix) {
        l->fd[0] = listen_unix(a);
        l->n = l->fd[0] >= 0;
        l->path = l->n ? g_strdup(a->path) : NULL;
        why = l->n ? NULL : g_strerror(errno);
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
    while (l->n) {
        l->n--;
        g_source_remove(l->tag[l->n]);
        close(l->fd[l->n]);
    }
    if (l->path) {
        unlink(l->path);
    }
    g_clear_pointer(&l->path, g_free);
}
