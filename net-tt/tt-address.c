/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Addresses of the members of a group.
 */
#include "net-tt/tt-address.h"

#include <glib.h>

static TtStatus parse_path(TtAddress *a, const char *path, TtDiag *diag)
{
    if (!*path || strlen(path) > TT_ADDRESS_PATH_MAX) {
        return tt_fail(diag, TT_ERR_INVALID, "the path of a Unix socket must have 1 to "
                       "%d bytes, and this one has %zu",
                       TT_ADDRESS_PATH_MAX, strlen(path));
    }
    a->is_unix = true;
    g_strlcpy(a->path, path, sizeof(a->path));
    return TT_OK;
}

static bool parse_port(TtAddress *a, const char *port)
{
    guint64 n;

    if (!g_ascii_string_to_unsigned(port, 10, 0, 65535, &n, NULL)) {
        return false;
    }
    g_snprintf(a->port, sizeof(a->port), "%u", (unsigned)n);
    return true;
}

TtStatus tt_address_parse(TtAddress *a, const char *text, TtDiag *diag)
{
    const char *colon, *host = text, *end;

    memset(a, 0, sizeof(*a));
    if (g_str_has_prefix(text, "unix:")) {
        return parse_path(a, text + 5, diag);
    }
    if (g_str_has_prefix(text, "tcp:")) {
        host = text + 4;
    } else if (strchr(text, '/')) {
        return parse_path(a, text, diag);
    }
    colon = strrchr(host, ':');
    end = colon;
    if (colon && *host == '[' && colon > host + 1 && colon[-1] == ']') {
        host++;
        end--;
    } else if (colon && memchr(host, ':', colon - host)) {
        colon = NULL;                   /* IPv6 without [] */
    }
    if (!colon || end - host > TT_ADDRESS_HOST_MAX || !parse_port(a, colon + 1)) {
        return tt_fail(diag, TT_ERR_INVALID, "an address is the path of a Unix socket "
                       "(unix:PATH) or HOST:PORT with a port up to 65535, not '%.60s'",
                       text);
    }
    g_strlcpy(a->host, host, end - host + 1);
    if (!*a->host) {
        g_strlcpy(a->host, "127.0.0.1", sizeof(a->host));
    }
    return TT_OK;
}

/* 127.x.x.x, and no name that begins so. */
static bool is_loopback4(const char *host)
{
    unsigned dots = 0;

    for (const char *p = host; *p; p++) {
        if (*p != '.' && !g_ascii_isdigit(*p)) {
            return false;
        }
        dots += *p == '.';
    }
    return dots == 3 && g_str_has_prefix(host, "127.");
}

/* ::1, also as ::1%lo, and 127.x.x.x as ::ffff:127.x.x.x. */
static bool is_loopback6(const char *host)
{
    static const char mapped[] = "::ffff:";

    return !strcmp(host, "::1") || !strcmp(host, "::1%lo") ||
        (!g_ascii_strncasecmp(host, mapped, strlen(mapped)) &&
         is_loopback4(host + strlen(mapped)));
}

bool tt_address_is_local(const TtAddress *a)
{
    return a->is_unix || is_loopback4(a->host) || is_loopback6(a->host) ||
        !strcmp(a->host, "localhost");
}

TtStatus tt_address_check(const TtAddress *a, bool has_key, TtDiag *diag)
{
    if (!has_key && !tt_address_is_local(a)) {
        return tt_fail(diag, TT_ERR_INVALID, "without a key of the group only loopback "
                       "addresses and Unix sockets are allowed, and %.60s is neither: give "
                       "all members the same key-file", a->host);
    }
    return TT_OK;
}
