/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Unit tests of the manifest: it comes back as saved, and every wrong text
 * gets a sentence that names the place.
 */
#include "run/tt-manifest.h"

#include <sys/stat.h>
#include <unistd.h>
#include <glib.h>
#include <glib/gstdio.h>

static const char good[] =
    "[run]\n"
    "features=0x0\n"
    "rules=0x3d\n"
    "uuid=00010203-0405-0607-0809-0a0b0c0d0e0f\n"
    "accel=tcg\n"
    "tlb-entries=4096\n"
    "fence-interval=1000000\n"
    "command-line=qemu -m 64\n"
    "[cpu]\n"
    "count=1\n"
    "type=qemu64-x86_64-cpu\n"
    "words=0x1 2 0xffffffff\n"
    "[blocks]\n"
    "count=2\n"
    "[block-0]\n"
    "name=pc.ram\n"
    "size=67108864\n"
    "max-size=67108864\n"
    "flags=\n"
    "[block-1]\n"
    "name=pc.bios\n"
    "size=0x40000\n"
    "max-size=0x80000\n"
    "flags=rom romd\n";

static TtStatus parse(const char *text, TtManifest *m, TtDiag *d)
{
    TtStatus status = tt_manifest_parse(text, strlen(text), m, d);

    g_assert_cmpint(d->status == status || status == TT_OK, ==, true);
    return status;
}

/* A branch names its parent, whole or not at all; and it comes back as saved. */
static void test_a_branch_names_its_parent(void)
{
    static const char parent[] = "[parent]\npath=../parent.run\n"
        "uuid=00010203-0405-0607-0809-0a0b0c0d0e0f\ncheckpoint=7\n"
        "position=123456789012\n";
    g_autofree char *branch = g_strconcat(good, parent, NULL);
    g_autofree char *path = g_strdup_printf("%s/tt-branch-%d", g_get_tmp_dir(),
                                            (int)getpid());
    TtManifest m, again;
    TtDiag d = { 0 };

    memcpy(strstr(branch, "features=0x0"), "features=0x1", 12);
    g_assert_cmpint(parse(branch, &m, &d), ==, TT_OK);
    g_free(m.directory);
    m.directory = g_strdup("/some where");
    g_free(m.parent_path);
    m.parent_path = g_strdup("../ w\u00f6rk \"dir\" \\ ");
    g_assert_cmpstr(m.positions, ==, "");
    g_free(m.positions);
    m.positions = g_strdup("exits and landmarks");
    g_assert_cmpint(tt_manifest_save(&m, path, &d), ==, TT_OK);
    g_assert_cmpint(tt_manifest_load(path, &again, &d), ==, TT_OK);
    g_assert_cmpstr(again.parent_path, ==, "../ w\u00f6rk \"dir\" \\ ");
    g_assert_cmpmem(again.parent_uuid, 16, again.uuid, 16);
    g_assert_cmpuint(again.parent_checkpoint, ==, 7);
    g_assert_cmpuint(again.parent_pos, ==, 123456789012);
    g_assert_cmpstr(again.directory, ==, "/some where");
    g_assert_cmpstr(again.positions, ==, "exits and landmarks");
    tt_manifest_cleanup(&m);
    tt_manifest_cleanup(&again);
    g_unlink(path);
    memcpy(strstr(branch, "checkpoint="), "chuckpoint=", 11);
    g_assert_cmpint(parse(branch, &m, &d), ==, TT_ERR_FORMAT);
    g_assert_nonnull(strstr(d.text, "[parent]"));
}

static void test_a_good_one_is_read(void)
{
    TtManifest m;
    TtDiag d = { 0 };

    g_assert_cmpint(parse(good, &m, &d), ==, TT_OK);
    for (unsigned i = 0; i < 16; i++) {
        g_assert_cmpuint(m.uuid[i], ==, i);
    }
    g_assert_cmpuint(m.features, ==, 0);
    g_assert_cmphex(m.rules, ==, 0x3d);
    g_assert_cmpint(tt_manifest_check_rules(&m, 4096, &d), ==, TT_OK);
    m.rules = TT_MANIFEST_RULES;
    g_assert_cmpint(tt_manifest_check_rules(&m, 4096, &d), ==, TT_OK);
    m.rules |= TT_RULE_LIKE_HARDWARE;
    g_assert_cmpint(tt_manifest_check_rules(&m, 4096, &d), ==, TT_OK);
    g_assert_cmpint(tt_manifest_check_rules(&m, 64, &d), ==, TT_ERR_VERSION);
    g_assert_nonnull(strstr(d.text, "TLB 4096) that differ"));
    g_assert_cmpstr(m.accel, ==, "tcg");
    g_assert_cmpstr(m.command_line, ==, "qemu -m 64");
    g_assert_cmpstr(m.host, ==, "");
    g_assert_cmpuint(m.sync_interval, ==, 1000000);
    g_assert_cmpuint(m.n_cpus, ==, 1);
    g_assert_cmpstr(m.cpu_type, ==, "qemu64-x86_64-cpu");
    g_assert_cmpuint(m.n_cpu_words, ==, 3);
    g_assert_cmphex(m.cpu_words[2], ==, 0xffffffff);
    g_assert_cmpuint(m.n_blocks, ==, 2);
    g_assert_cmpstr(m.blocks[1].name, ==, "pc.bios");
    g_assert_cmpuint(m.blocks[1].size_bytes, ==, 0x40000);
    g_assert_cmpuint(m.blocks[1].max_bytes, ==, 0x80000);
    g_assert_cmpuint(m.blocks[1].flags, ==, TT_BLOCK_ROM | TT_BLOCK_ROMD);
    tt_manifest_cleanup(&m);
    tt_manifest_cleanup(&m);
}

/* Replaces the first @from in the good text. */
static char *edited(const char *from, const char *to)
{
    const char *at = strstr(good, from);

    g_assert_nonnull(at);
    return g_strdup_printf("%.*s%s%s", (int)(at - good), good, to,
                           at + strlen(from));
}

static void test_each_wrong_value_is_named(void)
{
    static const struct {
        const char *from, *to;
        TtStatus status;
        const char *says;
    } cases[] = {
        { "features=0x0\n", "", TT_ERR_FORMAT, "'features' in [run]" },
        { "0x0\n", "0x80\n", TT_ERR_VERSION, "(0x80)" },
        { "0x0\n", "none\n", TT_ERR_FORMAT, "not 'none'" },
        { "rules=0x3d\n", "", TT_ERR_FORMAT, "'rules' in [run]" },
        { "rules=0x3d", "rules=all", TT_ERR_FORMAT, "not 'all'" },
        { "uuid=0", "uuid=x", TT_ERR_FORMAT, "'uuid'" },
        { "0e0f", "0e0f0", TT_ERR_FORMAT, "'uuid'" },
        { "0e0f", "0e0", TT_ERR_FORMAT, "'uuid'" },
        { "-0405", "0405", TT_ERR_FORMAT, "'uuid'" },
        { "accel=tcg", "accel=", TT_ERR_FORMAT, "'accel' in [run] is empty" },
        { "accel=tcg", "accel=\\q", TT_ERR_FORMAT, "escape" },
        { "=1000000", "=-1", TT_ERR_FORMAT, "'fence-interval'" },
        { "=1000000", "=+1", TT_ERR_FORMAT, "number" },
        { "=1000000", "=1 0", TT_ERR_FORMAT, "'fence-interval'" },
        { "=1000000", "=18446744073709551615", TT_OK, "" },
        { "=1000000", "=18446744073709551616", TT_ERR_FORMAT, "number" },
        { "=1000000", "=0xffffffffffffffff", TT_OK, "" },
        { "=1000000", "=0x10000000000000000", TT_ERR_FORMAT, "number" },
        { "=1000000", "=0x", TT_ERR_FORMAT, "number" },
        { "count=1", "count=0", TT_ERR_LIMIT, "'count' in [cpu]" },
        { "count=1", "count=257", TT_ERR_LIMIT, "from 1 to 256" },
        { "type=qemu64-x86_64-cpu\n", "", TT_ERR_FORMAT, "'type' in [cpu]" },
        { "type=qemu64-x86_64-cpu", "type=", TT_ERR_FORMAT, "empty" },
        { "0x1 2", "0x100000000 2", TT_ERR_FORMAT, "'words'" },
        { "0x1 2", "0x1  2", TT_ERR_FORMAT, "'words'" },
        { "0x1 2", "0x1,2", TT_ERR_FORMAT, "not '0x1,2'" },
        { "words=0x1 2 0xffffffff", "words=", TT_OK, "" },
        { "count=2", "count=3", TT_ERR_FORMAT, "'name' in [block-2]" },
        { "count=2", "count=1025", TT_ERR_LIMIT, "'count' in [blocks]" },
        { "[blocks]", "[stones]", TT_ERR_FORMAT, "'count' in [blocks]" },
        { "name=pc.ram", "name=", TT_ERR_LIMIT, "'name' in [block-0]" },
        { "name=pc.ram", "name=pc.bios", TT_ERR_FORMAT, "[block-1]" },
        { "size=67108864", "size=67108865", TT_ERR_LIMIT, "[block-0]" },
        { "max-size=0x80000", "max-size=0x400000000001", TT_ERR_LIMIT,
          "'max-size' in [block-1]" },
        { "max-size=0x80000", "max-size=0", TT_ERR_LIMIT, "'max-size'" },
        { "flags=\n", "", TT_ERR_FORMAT, "'flags' in [block-0]" },
        { "flags=\n", "flags=ram\n", TT_ERR_FORMAT, "not 'ram'" },
        { "[cpu]", "[cpu", TT_ERR_FORMAT, "manifest:" },
        { "[cpu]", "nonsense", TT_ERR_FORMAT, "manifest:" },
        { "[cpu]", "\xff", TT_ERR_FORMAT, "UTF-8" },
        /* What is not known and not announced as must-know is no error. */
        { "[cpu]\n", "color=blue\n[weather]\nrain=yes\n[cpu]\n", TT_OK, "" },
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *text = edited(cases[i].from, cases[i].to);
        TtManifest m;
        TtDiag d = { 0 };
        TtStatus status = parse(text, &m, &d);

        g_test_message("%s", d.text);
        g_assert_cmpint(status, ==, cases[i].status);
        if (status != TT_OK) {
            g_assert_nonnull(strstr(d.text, cases[i].says));
            g_assert_true(g_str_has_prefix(d.text, "manifest: "));
            g_assert_null(m.blocks);
        }
        tt_manifest_cleanup(&m);
    }
}

static void test_a_run_of_other_rules_names_its_version(void)
{
    static const struct {
        const char *to, *says;
    } cases[] = {
        { "rules=0x7\ntt-version=0.\\t7", "recorded it, 0.\\t7" },
        { "rules=0x1f\n", "recorded it, which it does not name" },
        { "rules=0\ntt-version=2", "(0x0, TLB 4096) that differ from those of this "
          "version (0x27d, TLB 4096)" },
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *text = edited("rules=0x3d", cases[i].to);
        TtManifest m;
        TtDiag d = { 0 };

        g_assert_cmpint(parse(text, &m, &d), ==, TT_OK);
        g_assert_cmpint(tt_manifest_check_rules(&m, 4096, &d), ==,
                        TT_ERR_VERSION);
        g_assert_nonnull(strstr(d.text, cases[i].says));
        tt_manifest_cleanup(&m);
    }
}

static void test_too_many_words_are_refused(void)
{
    for (unsigned n = TT_CPU_WORDS_MAX - 1; n <= TT_CPU_WORDS_MAX + 2; n++) {
        GString *words = g_string_new("words=1");
        TtManifest m;
        TtDiag d;

        for (unsigned i = 1; i < n; i++) {
            g_string_append(words, " 1");
        }
        g_autofree char *text = edited("words=0x1 2 0xffffffff", words->str);
        g_assert_cmpint(parse(text, &m, &d), ==,
                        n <= TT_CPU_WORDS_MAX ? TT_OK : TT_ERR_LIMIT);
        g_assert_cmpuint(m.n_cpu_words, ==, n <= TT_CPU_WORDS_MAX ? n : 0);
        tt_manifest_cleanup(&m);
        g_string_free(words, true);
    }
}

static void test_sizes_at_the_limit(void)
{
    g_autofree char *big = g_strnfill(TT_MANIFEST_BYTES_MAX + 1, '\n');
    TtManifest m;
    TtDiag d;

    memcpy(big, good, strlen(good));
    g_assert_cmpint(tt_manifest_parse(big, TT_MANIFEST_BYTES_MAX, &m, &d),
                    ==, TT_OK);
    tt_manifest_cleanup(&m);
    g_assert_cmpint(tt_manifest_parse(big, TT_MANIFEST_BYTES_MAX + 1, &m, &d),
                    ==, TT_ERR_LIMIT);
    g_assert_cmpint(tt_manifest_parse("", 0, &m, &d), ==, TT_ERR_FORMAT);
    g_assert_nonnull(strstr(d.text, "empty"));
    big[100] = 0;
    g_assert_cmpint(tt_manifest_parse(big, 4096, &m, &d), ==, TT_ERR_FORMAT);
}

/* Every prefix is either refused or, at most, lacks what is optional. */
static void test_a_text_cut_anywhere_is_no_crash(void)
{
    for (size_t len = 0; len < strlen(good); len++) {
        TtManifest m;
        TtDiag d = { 0 };
        TtStatus status = tt_manifest_parse(good, len, &m, &d);
        if (len < strlen(good) - 10) {
            g_assert_cmpint(status, <, 0);
        }
        if (status < 0) {
            g_assert_cmpint(d.text[0], !=, 0);
        }
        tt_manifest_cleanup(&m);
    }
}

static TtManifest sample(TtBlockInfo *blocks)
{
    TtManifest m = {
        .uuid = { 0xde, 0xad }, .qemu_version = (char *)"10.0.13",
        .accel = (char *)"tcg", .n_cpus = 1, .sync_interval = 7,
        .command_line = (char *)" -append 'a=b; c\\d'\n\xff [x] #\t",
        .cpu_type = (char *)"max-x86_64-cpu", .cpu_words = { 1, 0, UINT32_MAX },
        .n_cpu_words = 3, .n_blocks = 2, .blocks = blocks,
        .tlb_entries = 64, .rules = TT_RULE_COUNT | UINT64_C(1) << 63,
    };

    memset(blocks, 0, 2 * sizeof(*blocks));
    memset(blocks[0].name, 'n', TT_BLOCK_NAME_MAX);
    blocks[0].max_bytes = blocks[0].size_bytes = TT_BLOCK_BYTES_MAX;
    g_strlcpy(blocks[1].name, "/rom@etc/acpi/tables", sizeof(blocks[1].name));
    blocks[1].max_bytes = 1;
    blocks[1].flags = TT_BLOCK_ROM;
    return m;
}

static void test_sync_starts(void)
{
    static const char *const wrong[] = { "9 9", "8 7", "0", "1  2", "x" };
    g_autofree char *dir = g_dir_make_tmp("tt-manifest-XXXXXX", NULL);
    g_autofree char *path = g_build_filename(dir, "manifest", NULL);
    uint64_t starts[] = { 5, 6, INT64_MAX };
    TtBlockInfo blocks[2];
    TtManifest a = sample(blocks), b;
    TtDiag d = { 0 };

    a.features = TT_FEATURE_SYNC_STARTS;
    a.sync_starts = starts;
    a.n_sync_starts = G_N_ELEMENTS(starts);
    g_assert_cmpint(tt_manifest_save(&a, path, &d), ==, TT_OK);
    g_assert_cmpint(tt_manifest_load(path, &b, &d), ==, TT_OK);
    g_assert_cmpmem(starts, sizeof(starts), b.sync_starts,
                    b.n_sync_starts * sizeof(*b.sync_starts));
    tt_manifest_cleanup(&b);
    for (unsigned i = 0; i < G_N_ELEMENTS(wrong); i++) {
        g_autofree char *line = g_strdup_printf("features=0x20\nsync-starts=%s\n",
                                                wrong[i]);
        g_auto(GStrv) halves = g_strsplit(good, "features=0x0\n", 2);
        g_autofree char *text = g_strjoinv(line, halves);

        g_assert_cmpint(tt_manifest_parse(text, strlen(text), &b, &d), ==,
                        TT_ERR_FORMAT);
        g_assert_nonnull(strstr(d.text, "'sync-starts' in [run]"));
    }
    g_unlink(path);
    g_rmdir(dir);
}

static void test_frames(void)
{
    g_autofree char *dir = g_dir_make_tmp("tt-manifest-XXXXXX", NULL);
    g_autofree char *path = g_build_filename(dir, "manifest", NULL);
    g_auto(GStrv) halves = g_strsplit(good, "features=0x0\n", 2);
    g_autofree char *text = g_strjoinv("features=0x40\n", halves);
    TtBlockInfo blocks[2];
    TtManifest a = sample(blocks), b;
    char where[] = "../frames";
    TtDiag d = { 0 };

    a.features = TT_FEATURE_FRAMES;
    a.frames = where;
    g_assert_cmpint(tt_manifest_save(&a, path, &d), ==, TT_OK);
    g_assert_cmpint(tt_manifest_load(path, &b, &d), ==, TT_OK);
    g_assert_cmpstr(b.frames, ==, where);
    tt_manifest_cleanup(&b);
    g_assert_cmpint(tt_manifest_parse(text, strlen(text), &b, &d), ==, TT_ERR_FORMAT);
    g_assert_nonnull(strstr(d.text, "'path' in [frames] is missing"));
    g_unlink(path);
    g_rmdir(dir);
}

static void test_what_is_saved_is_loaded(void)
{
    g_autofree char *dir = g_dir_make_tmp("tt-manifest-XXXXXX", NULL);
    g_autofree char *path = g_build_filename(dir, "manifest", NULL);
    g_autofree char *temp = g_strconcat(path, ".tmp", NULL);
    TtBlockInfo blocks[2];
    TtManifest a = sample(blocks), b;
    TtDiag d = { 0 };

    /* A killed recorder's leavings do not matter. */
    g_assert_true(g_file_set_contents(temp, "old", -1, NULL));
    g_assert_cmpint(tt_manifest_save(&a, path, &d), ==, TT_OK);
    g_assert_false(g_file_test(temp, G_FILE_TEST_EXISTS));
    g_assert_cmpint(tt_manifest_load(path, &b, &d), ==, TT_OK);
    g_assert_cmpmem(a.uuid, 16, b.uuid, 16);
    g_assert_cmpstr(b.qemu_version, ==, "10.0.13");
    g_assert_cmpstr(b.host, ==, "");
    g_assert_cmpstr(b.command_line, ==,
                    " -append 'a=b; c\\d'\n\xef\xbf\xbd [x] #\t");
    g_assert_cmpuint(b.sync_interval, ==, 7);
    g_assert_cmphex(b.rules, ==, a.rules);
    g_assert_cmpuint(b.tlb_entries, ==, 64);
    g_assert_cmpstr(b.cpu_type, ==, a.cpu_type);
    g_assert_cmpmem(a.cpu_words, 12, b.cpu_words, 12);
    g_assert_cmpuint(b.n_blocks, ==, 2);
    g_assert_cmpmem(b.blocks, 2 * sizeof(*blocks), blocks, sizeof(blocks));
    tt_manifest_cleanup(&b);
    g_unlink(path);
    g_rmdir(dir);
}

static void test_each_flip_is_found(void)
{
    g_autofree char *dir = g_dir_make_tmp("tt-manifest-XXXXXX", NULL);
    g_autofree char *path = g_build_filename(dir, "manifest", NULL);
    g_autofree char *text = NULL;
    TtBlockInfo blocks[2];
    TtManifest a = sample(blocks), b;
    TtDiag d = { 0 };
    size_t len;

    a.rules = TT_MANIFEST_RULES;
    g_assert_cmpint(tt_manifest_save(&a, path, &d), ==, TT_OK);
    g_assert_true(g_file_get_contents(path, &text, &len, NULL));
    g_assert_cmpint(tt_manifest_parse(text, len, &b, &d), ==, TT_OK);
    tt_manifest_cleanup(&b);
    for (size_t i = 0; i < len * 8; i++) {
        text[i / 8] ^= 1 << i % 8;
        g_assert_cmpint(tt_manifest_parse(text, len, &b, &d), !=, TT_OK);
        g_assert_cmpint(tt_manifest_parse(text, i / 8, &b, &d), !=, TT_OK);
        text[i / 8] ^= 1 << i % 8;
    }
    g_unlink(path);
    g_rmdir(dir);
}

static void test_what_could_not_be_loaded_is_not_saved(void)
{
    g_autofree char *dir = g_dir_make_tmp("tt-manifest-XXXXXX", NULL);
    g_autofree char *path = g_build_filename(dir, "manifest", NULL);

    for (unsigned i = 0; i < 9; i++) {
        TtBlockInfo blocks[2];
        TtManifest m = sample(blocks);
        TtDiag d = { 0 };

        switch (i) {
        case 0: m.n_cpus = 0; break;
        case 1: m.accel = NULL; break;
        case 2: m.cpu_type = (char *)"not \xff UTF-8"; break;
        case 3: m.n_blocks = TT_BLOCKS_MAX + 1; break;
        case 4: m.n_cpu_words = TT_CPU_WORDS_MAX + 1; break;
        case 5: blocks[1].size_bytes = 2; break;
        case 6: blocks[1].flags = 4; break;
        case 7: blocks[0] = blocks[1]; break;
        case 8: blocks[1].name[0] = (char)0xff; break;
        }
        g_assert_cmpint(tt_manifest_save(&m, path, &d), <, 0);
        g_assert_true(g_str_has_prefix(d.text, "manifest: "));
        g_assert_false(g_file_test(path, G_FILE_TEST_EXISTS));
    }
    g_assert_cmpint(g_rmdir(dir), ==, 0);       /* nothing was left behind */
}

/* Each operation fails once: it is told, and what is there is no manifest unless it
 * is all of it. */
static void test_a_write_that_fails_is_told(void)
{
    TtBlockInfo blocks[2];
    TtManifest m = sample(blocks), back;
    TtStatus status;
    uint64_t nth = 0;
    size_t whole = 0;

    do {
        TtIo *mem = tt_io_mem_new(NULL, 0);
        TtIo *io = tt_io_fault_new(mem, ++nth, TT_ERR_NOSPACE);
        const uint8_t *bytes;
        TtDiag d = { 0 };
        size_t len;

        status = tt_manifest_write(&m, io, &d);
        bytes = tt_io_mem_data(mem, &len);
        g_assert_true(status == TT_OK || (status == TT_ERR_NOSPACE &&
                                          d.text[0]));
        if (status == TT_OK) {
            whole = len;
            g_assert_cmpint(tt_manifest_parse((const char *)bytes, len, &back,
                                              NULL), ==, TT_OK);
            tt_manifest_cleanup(&back);
        }
        tt_io_close(io);
    } while (status != TT_OK);
    g_assert_cmpuint(nth, ==, 3);               /* append, sync */
    g_assert_cmpuint(whole, >, 300);
}

static void test_a_failed_save_leaves_nothing(void)
{
    g_autofree char *dir = g_dir_make_tmp("tt-manifest-XXXXXX", NULL);
    g_autofree char *path = g_build_filename(dir, "manifest", NULL);
    g_autofree char *inside = g_build_filename(path, "x", NULL);
    g_autofree char *deep = g_build_filename(dir, "none", "manifest", NULL);
    TtBlockInfo blocks[2];
    TtManifest m = sample(blocks);
    TtDiag d;

    g_assert_cmpint(tt_manifest_save(&m, deep, &d), ==, TT_ERR_IO);
    g_assert_nonnull(strstr(d.text, "none/manifest"));
    g_assert_cmpint(g_mkdir_with_parents(inside, 0700), ==, 0);
    g_assert_cmpint(tt_manifest_save(&m, path, &d), ==, TT_ERR_IO);
    g_assert_nonnull(strstr(d.text, "rename"));
    g_assert_cmpint(tt_manifest_load(deep, &m, &d), ==, TT_ERR_IO);
    g_assert_nonnull(strstr(d.text, "nothing was recorded"));
    g_assert_cmpint(tt_manifest_check_unpacked(deep, &d), ==, TT_OK);
    g_assert_cmpint(tt_manifest_load(path, &m, &d), ==, TT_ERR_IO);
    g_assert_nonnull(strstr(d.text, "directory"));
    g_rmdir(inside);
    g_rmdir(path);
    g_assert_cmpint(g_rmdir(dir), ==, 0);
}

static void test_half_of_a_run_is_said_to_be_one(void)
{
    g_autofree char *dir = g_dir_make_tmp("tt-manifest-XXXXXX", NULL);
    g_autofree char *path = g_build_filename(dir, "manifest", NULL);
    g_autofree char *half = g_strconcat(path, TT_MANIFEST_UNPACKING, NULL);
    TtManifest m;
    TtDiag d;

    g_assert_true(g_file_set_contents(half, "", 0, NULL));
    g_assert_cmpint(tt_manifest_load(path, &m, &d), ==, TT_ERR_IO);
    g_assert_nonnull(strstr(d.text, "an incomplete run"));
    g_assert_cmpint(tt_manifest_check_unpacked(path, &d), ==, TT_ERR_IO);
    g_assert_true(g_file_set_contents(path, "", 0, NULL));
    g_assert_cmpint(tt_manifest_check_unpacked(path, &d), ==, TT_OK);
    g_unlink(path);
    g_unlink(half);
    g_assert_cmpint(g_rmdir(dir), ==, 0);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/tt/manifest/a-good-one-is-read",
                    test_a_good_one_is_read);
    g_test_add_func("/tt/manifest/a-branch-names-its-parent",
                    test_a_branch_names_its_parent);
    g_test_add_func("/tt/manifest/each-wrong-value-is-named",
                    test_each_wrong_value_is_named);
    g_test_add_func("/tt/manifest/a-run-of-other-rules-names-its-version",
                    test_a_run_of_other_rules_names_its_version);
    g_test_add_func("/tt/manifest/too-many-words-are-refused",
                    test_too_many_words_are_refused);
    g_test_add_func("/tt/manifest/sizes-at-the-limit",
                    test_sizes_at_the_limit);
    g_test_add_func("/tt/manifest/a-text-cut-anywhere-is-no-crash",
                    test_a_text_cut_anywhere_is_no_crash);
    g_test_add_func("/tt/manifest/sync-starts", test_sync_starts);
    g_test_add_func("/tt/manifest/frames", test_frames);
    g_test_add_func("/tt/manifest/what-is-saved-is-loaded",
                    test_what_is_saved_is_loaded);
    g_test_add_func("/tt/manifest/each-flip-is-found", test_each_flip_is_found);
    g_test_add_func("/tt/manifest/what-could-not-be-loaded-is-not-saved",
                    test_what_could_not_be_loaded_is_not_saved);
    g_test_add_func("/tt/manifest/a-write-that-fails-is-told",
                    test_a_write_that_fails_is_told);
    g_test_add_func("/tt/manifest/a-failed-save-leaves-nothing",
                    test_a_failed_save_leaves_nothing);
    g_test_add_func("/tt/manifest/half-of-a-run-is-said-to-be-one",
                    test_half_of_a_run_is_said_to_be_one);
    return g_test_run();
}
