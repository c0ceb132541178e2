/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The key of a group, from files of every kind: it is read, or one sentence says why not. */
#include "net-tt/tt-link.h"

#include <glib.h>
#include <glib/gstdio.h>
#include <sys/stat.h>
#include <unistd.h>

static char *dir;

static void check(const char *path, TtStatus wanted, const char *why)
{
    uint8_t *key = NULL;
    size_t len = 0;
    TtDiag diag = { 0 };

    g_assert_cmpint(tt_group_key_load(path, &key, &len, &diag), ==, wanted);
    g_assert_nonnull(strstr(diag.text, why));
    g_assert_null(strchr(diag.text, '\n'));
    g_assert_null(key);
}

static char *file_of(size_t n, const char *end)
{
    char *path = g_build_filename(dir, "key", NULL);
    g_autofree char *bytes = g_strnfill(n, 'k');
    g_autofree char *text = g_strconcat(bytes, end, NULL);

    if (n > 2) {
        text[n / 2] = 'e';
    }
    g_assert_true(g_file_set_contents(path, text, -1, NULL));
    return path;
}

static void test_sizes(void)
{
    static const struct { size_t n; const char *end, *why; } t[] = {
        { TT_GROUP_KEY_MIN, "", NULL },
        { TT_GROUP_KEY_MIN, "\n", NULL },
        { TT_GROUP_KEY_MAX, "", NULL },
        { TT_GROUP_KEY_MAX, "\n", NULL },
        { 0, "", "has 0" },
        { 0, "\n", "has 0" },
        { TT_GROUP_KEY_MIN - 1, "\n", "has 15" },
        { TT_GROUP_KEY_MAX + 1, "", "has more" },
        { TT_GROUP_KEY_MAX + 1, "\n", "has more" },
        { 10 << 20, "", "has more" },
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(t); i++) {
        g_autofree char *path = file_of(t[i].n, t[i].end);
        g_autofree uint8_t *key = NULL;
        size_t len;

        if (t[i].why) {
            check(path, TT_ERR_LIMIT, t[i].why);
        } else {
            g_assert_cmpint(tt_group_key_load(path, &key, &len, NULL), ==, TT_OK);
            g_assert_cmpuint(len, ==, t[i].n);
            g_assert_cmpint(key[0], ==, 'k');
            g_assert_cmpint(key[len - 1], ==, 'k');
        }
        unlink(path);
    }
}

static void test_same(void)
{
    static const char fill[] = { ' ', '\n', 0, 'k' };
    g_autofree char *path = g_build_filename(dir, "key", NULL);
    char bytes[40];

    for (unsigned i = 0; i < sizeof(fill); i++) {
        memset(bytes, fill[i], sizeof(bytes));
        g_assert_true(g_file_set_contents(path, bytes, sizeof(bytes), NULL));
        check(path, TT_ERR_INVALID, "is no key");
    }
    g_assert_cmpint(chmod(path, 0640), ==, 0);
    g_assert_false(tt_group_key_is_public(path));
    g_assert_cmpint(chmod(path, 0644), ==, 0);
    g_assert_true(tt_group_key_is_public(path));
    unlink(path);
}

/* Nobody writes into the FIFO, and /dev/zero has no end. */
static void test_kinds(void)
{
    g_autofree char *fifo = g_build_filename(dir, "fifo", NULL);
    g_autofree char *none = g_build_filename(dir, "none", NULL);

    g_assert_cmpint(mkfifo(fifo, 0600), ==, 0);
    check(fifo, TT_ERR_INVALID, "not a regular file");
    check("/dev/zero", TT_ERR_INVALID, "not a regular file");
    check(dir, TT_ERR_INVALID, "not a regular file");
    check(none, TT_ERR_IO, "No such file");
    unlink(fifo);
}

int main(int argc, char **argv)
{
    int result;

    g_test_init(&argc, &argv, NULL);
    dir = g_dir_make_tmp("tt-groupkey-XXXXXX", NULL);
    g_assert_nonnull(dir);
    g_test_add_func("/tt/groupkey/checks-sizes", test_sizes);
    g_test_add_func("/tt/groupkey/takes-regular-files", test_kinds);
    g_test_add_func("/tt/groupkey/refuses-what-is-no-key", test_same);
    result = g_test_run();
    g_rmdir(dir);
    g_free(dir);
    return result;
}
