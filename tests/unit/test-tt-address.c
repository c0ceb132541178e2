/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Addresses of a group's members: which are right, and which stay on this host. */
#include "net-tt/tt-address.h"

#include <glib.h>

static void test_right(void)
{
    static const struct { const char *text, *host, *port, *path; bool is_local; } t[] = {
        { "unix:a", "", "", "a", true },
        { "/run/g.sock", "", "", "/run/g.sock", true },
        { "./g:1", "", "", "./g:1", true },
        { ":7000", "127.0.0.1", "7000", "", true },
        { "tcp:localhost:0", "localhost", "0", "", true },
        { "127.3.4.5:1", "127.3.4.5", "1", "", true },
        { "[::1]:65535", "::1", "65535", "", true },
        { "[::1%lo]:9", "::1%lo", "9", "", true },
        { "[::ffff:127.0.0.1]:9", "::ffff:127.0.0.1", "9", "", true },
        { "[::FFFF:127.4.0.1]:9", "::FFFF:127.4.0.1", "9", "", true },
        { "[::ffff:192.0.2.1]:9", "::ffff:192.0.2.1", "9", "", false },
        { "[::1%eth0]:9", "::1%eth0", "9", "", false },
        { "tcp:[fe80::2]:9", "fe80::2", "9", "", false },
        { "0.0.0.0:9", "0.0.0.0", "9", "", false },
        { "127.0.0.1.example.org:9", "127.0.0.1.example.org", "9", "", false },
        { "127.1:9", "127.1", "9", "", false },
        { "[::]:9", "::", "9", "", false },
        { "example.org:9", "example.org", "9", "", false },
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(t); i++) {
        TtAddress a;
        TtDiag diag;

        g_assert_cmpint(tt_address_parse(&a, t[i].text, &diag), ==, TT_OK);
        g_assert_cmpstr(a.host, ==, t[i].host);
        g_assert_cmpstr(a.port, ==, t[i].port);
        g_assert_cmpstr(a.path, ==, t[i].path);
        g_assert_cmpint(tt_address_is_local(&a), ==, t[i].is_local);
        g_assert_cmpint(tt_address_check(&a, false, &diag) == TT_OK, ==, t[i].is_local);
        g_assert_cmpint(tt_address_check(&a, true, &diag), ==, TT_OK);
    }
}

static void test_wrong(void)
{
    static const char *const wrong[] = { "", "a", "a:", "a:b", "a:65536", "a:-1", "::1:7",
                                         "unix:", "tcp:", "tcp:7", "a: 7", "[]7", "[:7" };
    g_autofree char *path = g_strnfill(TT_ADDRESS_PATH_MAX + 1, '/');
    g_autofree char *host = g_strnfill(TT_ADDRESS_HOST_MAX + 1, 'a');
    g_autofree char *both = g_strconcat(host, ":7", NULL);
    TtAddress a;
    TtDiag diag;

    for (unsigned i = 0; i < G_N_ELEMENTS(wrong); i++) {
        if (strcmp(wrong[i], "[:7")) {
            g_assert_cmpint(tt_address_parse(&a, wrong[i], &diag), ==, TT_ERR_INVALID);
        } else {                        /* a strange name, and no loopback */
            g_assert_false(!tt_address_parse(&a, wrong[i], &diag) &&
                           tt_address_is_local(&a));
        }
    }
    g_assert_cmpint(tt_address_parse(&a, path, &diag), ==, TT_ERR_INVALID);
    g_assert_cmpint(tt_address_parse(&a, both, &diag), ==, TT_ERR_INVALID);
    g_assert_cmpint(tt_address_parse(&a, both + 1, &diag), ==, TT_OK);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/tt/address/reads-right-ones", test_right);
    g_test_add_func("/tt/address/refuses-wrong-ones", test_wrong);
    return g_test_run();
}
