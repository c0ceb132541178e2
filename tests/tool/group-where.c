/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which addresses of a group's members mean the same place: tt-tool-groupwhere.c. */
#include "tool/tt-tool-group.h"

#include <glib/gstdio.h>
#include <unistd.h>

/* In the place of tt-tool-util.c. */
int tool_complain(const char *fmt, ...)
{
    return TOOL_PROBLEM;
}

static void check(const char *listens, const char *connects, bool meets, bool has)
{
    GroupMeeting a = { .address = (char *)listens, .listens = true };
    GroupMeeting c = { .address = (char *)listens };
    GroupMeeting b = { .address = (char *)connects };
    GroupWhere *x = group_where_new(&a), *y = group_where_new(&b), *z = group_where_new(&c);

    g_test_message("%s, %s", listens, connects);
    g_assert_cmpint(group_where_meets(x, y), ==, meets);
    g_assert_cmpint(group_where_has(z, y), ==, has);
    group_where_free(x);
    group_where_free(y);
    group_where_free(z);
}

static void test_numbers(void)
{
    check("127.0.0.1:7", "127.0.0.1:7", true, true);
    check(":7", "tcp:127.0.0.1:007", true, true);
    check("127.0.0.1:7", "127.0.0.1:8", false, false);
    check("127.0.0.1:7", "127.0.0.2:7", false, false);
    check("[::1]:7", "[0:0::0:1]:7", true, true);
    check("[::1]:7", "127.0.0.1:7", false, false);
    check("127.1:7", "[::ffff:127.0.0.1]:7", true, true);
    check("localhost:7", "127.0.0.1:7", true, true);
    check("nosuch.invalid:7", "NoSuch.invalid:7", true, true);
    check("nosuch.invalid:7", "127.0.0.1:7", false, false);
}

/* All numbers of this host: 192.0.2.1 is no host's. A connection to them is one to itself. */
static void test_any(void)
{
    check("0.0.0.0:7", "127.0.0.1:7", true, true);
    check("0.0.0.0:7", "192.0.2.1:7", false, false);
    check("0.0.0.0:7", "127.0.0.1:8", false, false);
    check("[::]:7", "127.3.2.1:7", true, false);
    check("127.0.0.1:7", "0.0.0.0:7", true, true);
}

static void test_paths(void)
{
    g_autofree char *dir = g_dir_make_tmp("tt-where-XXXXXX", NULL);
    g_autofree char *other = g_strconcat(dir, "-other", NULL);
    g_autofree char *a = g_strconcat(dir, "/sock", NULL);
    g_autofree char *dots = g_strconcat("unix:", dir, "/.././", strrchr(dir, '/') + 1,
                                        "//sock", NULL);
    g_autofree char *link = g_strconcat(other, "/sock", NULL);
    g_autofree char *name = g_strconcat(dir, "/sock2", NULL);

    g_assert_cmpint(symlink(dir, other), ==, 0);
    check(a, dots, true, true);
    check(a, link, true, true);
    check(a, name, false, false);
    check(a, "127.0.0.1:7", false, false);
    g_assert_true(g_file_set_contents(a, "", 0, NULL));
    g_assert_cmpint(symlink(a, name), ==, 0);
    check(a, name, true, true);
    g_unlink(name);
    g_unlink(a);
    check("unix:/nowhere/sock", "/nowhere/./sock", false, false);
    check("unix:/nowhere/sock", "/nowhere/sock", true, true);
    g_unlink(other);
    g_rmdir(dir);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/tt/group-where/numbers", test_numbers);
    g_test_add_func("/tt/group-where/any-number", test_any);
    g_test_add_func("/tt/group-where/paths", test_paths);
    return g_test_run();
}
