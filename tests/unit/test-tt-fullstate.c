/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Full state: what is put comes back; what is cut, flipped or foreign is refused
 * with a sentence and read nowhere beyond its end. */
#include "run/tt-fullstate.h"

#include <glib.h>

static TtFullFile files[] = {
    { (char *)"/images/top.qcow2", 123456, 1767225600123456789u },
    { (char *)"disks/a b=[c].qcow2", 0, 0 },
};
static TtFullDisk disks[] = {
    { .device = (char *)"virtio0", .drive = 2, .node = (char *)"",
      .is_writable = true, .image = (char *)"/images/top.qcow2",
      .format = (char *)"qcow2", .size_bytes = 1 << 30,
      .n_files = 2, .files = files },
    { .device = (char *)"ide1-cd0", .drive = -1, .node = (char *)"cd",
      .image = (char *)"", .format = (char *)"" },
};
static const TtFullDesc sample = {
    .name = (char *)"before", .machine = (char *)"pc", .cpu = (char *)"qemu64",
    .ram_bytes = 1ull << 32, .n_disks = 2, .disks = disks,
};

static void assert_disk(const TtFullDisk *a, const TtFullDisk *b)
{
    g_assert_cmpstr(a->device, ==, b->device);
    g_assert_cmpint(a->drive, ==, b->drive);
    g_assert_cmpstr(a->node, ==, b->node);
    g_assert_cmpint(a->is_writable, ==, b->is_writable);
    g_assert_cmpstr(a->image, ==, b->image);
    g_assert_cmpstr(a->format, ==, b->format);
    g_assert_cmpuint(a->size_bytes, ==, b->size_bytes);
    g_assert_cmpuint(a->n_files, ==, b->n_files);
    for (unsigned i = 0; i < a->n_files; i++) {
        g_assert_cmpstr(a->files[i].path, ==, b->files[i].path);
        g_assert_cmpuint(a->files[i].size_bytes, ==, b->files[i].size_bytes);
        g_assert_cmpuint(a->files[i].mtime_ns, ==, b->files[i].mtime_ns);
    }
}

static void test_description(void)
{
    g_autofree char *text = tt_fulldesc_text(&sample);
    TtFullDesc d;

    g_assert_cmpint(tt_fulldesc_parse(text, strlen(text), &d, NULL), ==, TT_OK);
    g_assert_cmpstr(d.name, ==, "before");
    g_assert_cmpstr(d.machine, ==, "pc");
    g_assert_cmpstr(d.cpu, ==, "qemu64");
    g_assert_cmpuint(d.ram_bytes, ==, sample.ram_bytes);
    g_assert_cmpuint(d.n_disks, ==, 2);
    assert_disk(&d.disks[0], &disks[0]);
    assert_disk(&d.disks[1], &disks[1]);
    tt_fulldesc_cleanup(&d);
}

/* Without any one of its lines it is refused, but for those that may miss. */
static void test_line_missing(void)
{
    g_autofree char *text = tt_fulldesc_text(&sample);
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);

    for (unsigned i = 0; lines[i]; i++) {
        g_autoptr(GString) cut = g_string_new(NULL);
        TtFullDesc d;
        TtDiag diag;
        TtStatus s;

        for (unsigned k = 0; lines[k]; k++) {
            if (k != i) {
                g_string_append_printf(cut, "%s\n", lines[k]);
            }
        }
        s = tt_fulldesc_parse(cut->str, cut->len, &d, &diag);
        if (!*lines[i] || g_str_has_prefix(lines[i], "drive=")) {
            g_assert_cmpint(s, ==, TT_OK);
        } else {
            g_assert_cmpint(s, ==, TT_ERR_FORMAT);
            g_assert_true(strstr(diag.text, "damaged"));
            g_assert_null(d.disks);
        }
        tt_fulldesc_cleanup(&d);
    }
}

static TtFullWriter *write_sample(void)
{
    TtFullWriter *w = tt_full_writer_new();
    g_autofree char *text = tt_fulldesc_text(&sample);
    g_autofree char *zeros = g_malloc0(1 << 20);

    g_assert_cmpint(tt_full_put(w, TT_FULL_BLOCK, "vga.vram", zeros, 1 << 20,
                                NULL), ==, TT_OK);
    g_assert_cmpint(tt_full_put(w, 99, "later", "x", 1, NULL), ==, TT_OK);
    g_assert_cmpint(tt_full_put(w, TT_FULL_TEXT, NULL, text, strlen(text),
                                NULL), ==, TT_OK);
    g_assert_cmpint(tt_full_put(w, TT_FULL_DEVICES, NULL, "", 0, NULL), ==,
                    TT_OK);
    return w;
}

static void test_parts(void)
{
    static const struct { uint32_t kind; const char *name; } wanted[] = {
        { TT_FULL_BLOCK, "vga.vram" }, { 99, "later" }, { TT_FULL_TEXT, "" },
        { TT_FULL_DEVICES, "" },
    };
    TtFullWriter *w = write_sample();
    TtBytes rest = tt_full_bytes(w);
    g_autofree char *out = g_malloc(1 << 20);
    unsigned n = 0;
    TtFullPart part;
    TtFullDesc d;

    g_assert_cmpuint(rest.len, <, 4096);        /* zeros take no room */
    for (unsigned i = 0; i < G_N_ELEMENTS(wanted); i++) {
        g_assert_cmpint(tt_full_next(&rest, &n, &part, NULL), ==, TT_OK);
        g_assert_cmpuint(part.kind, ==, wanted[i].kind);
        g_assert_cmpstr(part.name, ==, wanted[i].name);
        memset(out, 1, 1 << 20);
        g_assert_cmpint(tt_full_unpack(&part, out, NULL), ==, TT_OK);
        g_assert_true(i || (!out[0] && !memcmp(out, out + 1, (1 << 20) - 1)));
    }
    g_assert_cmpint(tt_full_next(&rest, &n, &part, NULL), ==, TT_END);
    g_assert_cmpint(tt_fulldesc_find(tt_full_bytes(w), &d, NULL), ==, TT_OK);
    g_assert_cmpuint(d.n_disks, ==, 2);
    tt_fulldesc_cleanup(&d);
    tt_full_writer_free(w);
}

/* Reads all there is; TT_END when all of it is well. */
static TtStatus read_all(TtBytes rest)
{
    TtDiag diag = { 0 };
    TtFullPart part;
    unsigned n = 0;
    TtStatus s;

    while ((s = tt_full_next(&rest, &n, &part, &diag)) == TT_OK) {
        g_autofree char *out = NULL;

        if (part.raw_bytes > 1 << 20) {
            return TT_ERR_LIMIT;
        }
        out = g_malloc(part.raw_bytes + 1);
        s = tt_full_unpack(&part, out, &diag);
        if (s != TT_OK) {
            break;
        }
    }
    g_assert_true(s == TT_END || diag.text[0]);
    return s;
}

static void test_cut_and_flipped(void)
{
    TtFullWriter *w = write_sample();
    TtBytes all = tt_full_bytes(w);
    unsigned whole = 0;

    for (uint32_t len = 0; len < all.len; len++) {
        g_autofree uint8_t *cut = g_memdup2(all.data, len);

        whole += read_all((TtBytes) { cut, len }) == TT_END;
    }
    g_assert_cmpuint(whole, ==, 4);     /* between parts, and after the head */
    for (uint32_t bit = 0; bit < all.len * 8; bit++) {
        g_autofree uint8_t *flipped = g_memdup2(all.data, all.len);
        TtStatus s;

        flipped[bit / 8] ^= 1 << bit % 8;
        s = read_all((TtBytes) { flipped, all.len });
        g_assert_true(bit >= 64 || s == (bit < 32 ? TT_ERR_FORMAT :
                                         TT_ERR_VERSION));
    }
    tt_full_writer_free(w);
}

/* What does not fit a checkpoint is refused, and what was put stays good. */
static void test_too_large(void)
{
    TtFullWriter *w = write_sample();
    uint32_t before = tt_full_bytes(w).len;
    size_t len = TT_CPSTATE_FULL_MAX;
    g_autofree uint32_t *noise = g_malloc(len);
    g_autoptr(GRand) rand = g_rand_new_with_seed(1);
    TtDiag diag;

    for (size_t i = 0; i < len / 4; i++) {
        noise[i] = g_rand_int(rand);
    }
    g_assert_cmpint(tt_full_put(w, TT_FULL_BLOCK, "big", noise, len, &diag), ==,
                    TT_ERR_LIMIT);
    g_assert_true(strstr(diag.text, "MiB"));
    g_assert_cmpuint(tt_full_bytes(w).len, ==, before);
    g_assert_cmpint(read_all(tt_full_bytes(w)), ==, TT_END);
    tt_full_writer_free(w);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/tt/fullstate/description-comes-back", test_description);
    g_test_add_func("/tt/fullstate/line-missing", test_line_missing);
    g_test_add_func("/tt/fullstate/parts-come-back", test_parts);
    g_test_add_func("/tt/fullstate/cut-and-flipped", test_cut_and_flipped);
    g_test_add_func("/tt/fullstate/too-large", test_too_large);
    return g_test_run();
}
