/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Unit tests of the images below the disks of a run: they come back as saved, a change of
 * any of them is seen, and a damaged file gets a sentence.
 */
#include "run/tt-bases.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utime.h>
#include <glib.h>
#include <glib/gstdio.h>

typedef struct Place {
    char *run, *disks, *image;
} Place;

static void begin(Place *p)
{
    p->run = g_dir_make_tmp("tt-bases-XXXXXX", NULL);
    p->disks = g_build_filename(p->run, "disks", NULL);
    p->image = g_build_filename(p->run, "a \303\244\377=#.img", NULL);
    g_assert_cmpint(g_mkdir(p->disks, 0700), ==, 0);
}

static void end(Place *p)
{
    g_autofree char *file = g_build_filename(p->disks, TT_BASES_NAME, NULL);

    g_unlink(file);
    g_unlink(p->image);
    g_rmdir(p->disks);
    g_assert_cmpint(g_rmdir(p->run), ==, 0);
    g_free(p->run);
    g_free(p->disks);
    g_free(p->image);
}

static void fill(const char *path, size_t len)
{
    g_autofree char *bytes = g_malloc(len + 1);

    for (size_t i = 0; i < len; i++) {
        bytes[i] = i * 7 + i / 256;
    }
    g_assert_true(g_file_set_contents(path, bytes, len, NULL));
}

/* Without a trace in its times. */
static void poke(const char *path, uint64_t at)
{
    struct timespec times[2];
    struct stat st;
    char byte;
    int fd = open(path, O_RDWR);

    g_assert_cmpint(fstat(fd, &st), ==, 0);
    g_assert_cmpint(pread(fd, &byte, 1, at), ==, 1);
    byte = ~byte;
    g_assert_cmpint(pwrite(fd, &byte, 1, at), ==, 1);
    times[0] = st.st_atim;
    times[1] = st.st_mtim;
    g_assert_cmpint(futimens(fd, times), ==, 0);
    close(fd);
}

static void test_they_come_back_as_saved(void)
{
    TtBases b = { 0 }, again;
    TtBase *k;
    Place p;

    begin(&p);
    g_assert_cmpint(tt_bases_load(p.disks, &again, NULL), ==, TT_OK);
    g_assert_false(again.is_there);
    fill(p.image, 1000);
    k = tt_bases_add(&b, "disk0", p.image, 0);
    g_assert_true(tt_base_add_file(k, p.image, p.disks));
    tt_bases_add(&b, "other", "../../parent/disks/other.tt", 7);
    k->state = TT_BASE_DONE;
    tt_base_look_again(k, p.disks, NULL, p.image);
    g_assert_cmpint(tt_bases_save(p.disks, &b, NULL), ==, TT_OK);
    tt_bases_cleanup(&b);

    g_assert_cmpint(tt_bases_load(p.disks, &again, NULL), ==, TT_OK);
    g_assert_true(again.is_there);
    g_assert_cmpuint(again.n, ==, 2);
    k = tt_bases_find(&again, "disk0");
    g_assert_cmpstr(k->image, ==, p.image);
    g_assert_cmpint(k->state, ==, TT_BASE_DONE);
    g_assert_cmpuint(k->n_files, ==, 1);
    g_assert_cmpuint(k->files[0].size_bytes, ==, 1000);
    g_assert_null(tt_base_changed(k, p.disks, NULL));
    g_assert_true(tt_base_has_disk(k, p.image));
    k = tt_bases_find(&again, "other");
    g_assert_cmpuint(k->version, ==, 7);
    g_assert_cmpint(k->state, ==, TT_BASE_FRESH);
    g_assert_null(tt_bases_find(&again, "none"));

    tt_bases_remove(&again, "disk0");
    tt_bases_remove(&again, "other");
    g_assert_cmpint(tt_bases_save(p.disks, &again, NULL), ==, TT_OK);
    tt_bases_cleanup(&again);
    g_assert_cmpint(tt_bases_load(p.disks, &again, NULL), ==, TT_OK);
    g_assert_false(again.is_there);
    end(&p);
}

static void check_change(TtBase *k, const Place *p, bool is_seen)
{
    g_autofree char *changed = tt_base_changed(k, p->disks, NULL);

    g_assert_cmpstr(changed, ==, is_seen ? p->image : NULL);
    tt_base_look_again(k, p->disks, NULL, NULL);
    g_assert_null(tt_base_changed(k, p->disks, NULL));
}

static void test_a_change_is_seen(void)
{
    static const uint64_t places[] = { 0, 65535, 65536, 999999, 1000000 - 65536 };
    TtBases b = { 0 };
    Place p;
    TtBase *k;

    begin(&p);
    for (unsigned small = 0; small < 2; small++) {
        fill(p.image, small ? 100000 : 1000000);
        k = tt_bases_add(&b, "disk0", p.image, 0);
        g_assert_true(tt_base_add_file(k, p.image, p.disks));
        check_change(k, &p, false);
        for (unsigned i = 0; i < (small ? 3 : G_N_ELEMENTS(places)); i++) {
            poke(p.image, places[i]);
            check_change(k, &p, true);
        }
    }
    g_assert_cmpint(utime(p.image, NULL), ==, 0);
    check_change(k, &p, true);
    g_assert_cmpint(truncate(p.image, 100001), ==, 0);
    check_change(k, &p, true);
    tt_bases_cleanup(&b);
    end(&p);
}

/* It was moved, and the disk was told so. */
static void test_a_moved_image_is_the_same(void)
{
    g_autofree char *moved = NULL, *changed = NULL;
    TtBases b = { 0 };
    Place p;
    TtBase *k;

    begin(&p);
    moved = g_strconcat(p.image, ".moved", NULL);
    fill(p.image, 5000);
    k = tt_bases_add(&b, "disk0", p.image, 0);
    g_assert_true(tt_base_add_file(k, p.image, p.disks));
    g_assert_cmpint(g_rename(p.image, moved), ==, 0);
    g_assert_null(tt_base_changed(k, p.disks, moved));
    changed = tt_base_changed(k, p.disks, p.image);
    g_assert_cmpstr(changed, ==, p.image);
    g_unlink(moved);
    tt_bases_cleanup(&b);
    end(&p);
}

static void test_a_damaged_file_is_told(void)
{
    static const char *const bad[] = {
        "no key file", "[bases]\ndisks=1\n", "[bases]\ndisks=-1\n", "[bases]\ndisks=99999\n",
        "[bases]\ndisks=1\n[disk-0]\nname=a/b\nimage=x\nversion=0\nstate=fresh\nfiles=0\n",
        "[bases]\ndisks=1\n[disk-0]\nname=a\nimage=x\nversion=0\nstate=odd\nfiles=0\n",
        "[bases]\ndisks=1\n[disk-0]\nname=a\nimage=x\nversion=0\nstate=fresh\nfiles=1\n",
    };
    TtBases b;
    TtDiag d;
    Place p;

    begin(&p);
    for (unsigned i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_autofree char *file = g_build_filename(p.disks, TT_BASES_NAME, NULL);

        g_assert_true(g_file_set_contents(file, bad[i], -1, NULL));
        g_assert_cmpint(tt_bases_load(p.disks, &b, &d), ==, TT_ERR_FORMAT);
        g_assert_nonnull(strstr(d.text, "is damaged"));
        g_assert_cmpuint(b.n, ==, 0);
    }
    end(&p);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/tt/bases/they-come-back-as-saved", test_they_come_back_as_saved);
    g_test_add_func("/tt/bases/a-change-is-seen", test_a_change_is_seen);
    g_test_add_func("/tt/bases/a-moved-image-is-the-same", test_a_moved_image_is_the_same);
    g_test_add_func("/tt/bases/a-damaged-file-is-told", test_a_damaged_file_is_told);
    return g_test_run();
}
