/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tt group live: do two addresses of members mean the same place? A path has many names, and
 * so has a host.
 */
#include "tt-tool-group.h"
#include "tt-tool-hub.h"
#include "net-tt/tt-address.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

struct GroupWhere {
    TtAddress a;
    char *text;
    bool listens;
    GArray *numbers;            /* of HubNumber; NULL: were not looked up yet */
};

/* ::ffff:1.2.3.4 is 1.2.3.4; and a connection to "all numbers" is one to this host. */
static HubNumber plain(const struct addrinfo *at, bool listens)
{
    HubNumber n = { 0 };

    memcpy(&n, at->ai_addr, MIN(at->ai_addrlen, sizeof(n)));
    if (n.any.sa_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&n.v6.sin6_addr)) {
        HubNumber v4 = { .v4 = { .sin_family = AF_INET, .sin_port = n.v6.sin6_port } };

        memcpy(&v4.v4.sin_addr, &n.v6.sin6_addr.s6_addr[12], sizeof(v4.v4.sin_addr));
        n = v4;
    }
    if (!listens && n.any.sa_family == AF_INET && n.v4.sin_addr.s_addr == htonl(INADDR_ANY)) {
        n.v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    }
    if (!listens && n.any.sa_family == AF_INET6 &&
        IN6_IS_ADDR_UNSPECIFIED(&n.v6.sin6_addr)) {
        n.v6.sin6_addr = in6addr_loopback;
    }
    return n;
}

GroupWhere *group_where_new(const GroupMeeting *m)
{
    GroupWhere *w = g_new0(GroupWhere, 1);

    w->text = g_strdup(m->address);
    w->listens = m->listens;
    tt_address_parse(&w->a, m->address, NULL);
    return w;
}

void group_where_free(gpointer opaque)
{
    GroupWhere *w = opaque;

    if (w->numbers) {
        g_array_free(w->numbers, true);
    }
    g_free(w->text);
    g_free(w);
}

/* Empty: they are not known. */
static GArray *numbers_of(GroupWhere *w)
{
    struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *found;

    if (w->numbers) {
        return w->numbers;
    }
    w->numbers = g_array_new(false, false, sizeof(HubNumber));
    if (!*w->a.port || getaddrinfo(w->a.host, w->a.port, &hints, &found)) {
        return w->numbers;
    }
    for (struct addrinfo *at = found; at; at = at->ai_next) {
        if (at->ai_family == AF_INET || at->ai_family == AF_INET6) {
            HubNumber n = plain(at, w->listens);

            g_array_append_val(w->numbers, n);
        }
    }
    freeaddrinfo(found);
    return w->numbers;
}

/* ---- paths ---- */

static bool is_same_file(const char *a, const char *b)
{
    struct stat x, y;

    return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev &&
        x.st_ino == y.st_ino;
}

/* Nothing need be there yet. */
static bool is_same_path(const char *a, const char *b)
{
    g_autofree char *dir_a = g_path_get_dirname(a), *dir_b = g_path_get_dirname(b);
    g_autofree char *name_a = g_path_get_basename(a), *name_b = g_path_get_basename(b);

    return !strcmp(a, b) || (!strcmp(name_a, name_b) && is_same_file(dir_a, dir_b)) ||
        is_same_file(a, b);
}

/* ---- numbers ---- */

static bool has_number(GroupWhere *w, const HubNumber *n)
{
    GArray *numbers = numbers_of(w);

    for (unsigned i = 0; i < numbers->len; i++) {
        if (hub_number_covers(&g_array_index(numbers, HubNumber, i), true, n)) {
            return true;
        }
    }
    return false;
}

/* Is it one of this host? Who listens at all numbers has only those. */
static bool is_here(const HubNumber *n)
{
    int fd = socket(n->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    HubNumber any_port = *n;
    bool is_here;

    *(n->any.sa_family == AF_INET ? &any_port.v4.sin_port : &any_port.v6.sin6_port) = 0;
    is_here = fd >= 0 && bind(fd, &any_port.any, n->any.sa_family == AF_INET ?
                              sizeof(any_port.v4) : sizeof(any_port.v6)) == 0;
    if (fd >= 0) {
        close(fd);
    }
    return is_here;
}

/* What is known without numbers; or -1: the numbers tell. */
static int compare_texts(GroupWhere *a, GroupWhere *b)
{
    if (!strcmp(a->text, b->text)) {
        return true;
    }
    if (a->a.is_unix != b->a.is_unix) {
        return false;
    }
    if (a->a.is_unix) {
        return is_same_path(a->a.path, b->a.path);
    }
    if (!*a->a.port || strcmp(a->a.port, b->a.port)) {
        return false;                           /* or one that no VM takes */
    }
    return !g_ascii_strcasecmp(a->a.host, b->a.host) ? true :
        numbers_of(a)->len && numbers_of(b)->len ? -1 : false;
}

bool group_where_has(GroupWhere *w, GroupWhere *other)
{
    int known = compare_texts(w, other);

    for (unsigned i = 0; known < 0 && i < numbers_of(other)->len; i++) {
        if (!has_number(w, &g_array_index(numbers_of(other), HubNumber, i))) {
            return false;
        }
    }
    return known;
}

bool group_where_meets(GroupWhere *listens, GroupWhere *connects)
{
    int known = compare_texts(listens, connects);

    for (unsigned i = 0; known < 0 && i < numbers_of(connects)->len; i++) {
        const HubNumber *n = &g_array_index(numbers_of(connects), HubNumber, i);

        if (has_number(listens, n) && is_here(n)) {
            return true;
        }
    }
    return known > 0;
}
