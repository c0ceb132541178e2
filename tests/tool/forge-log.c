/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Makes a hostile log of a good one: some events have other values, data or
 * lengths, and all checksums are right.
 *
 *   tt-forge LOG NEW-LOG SEED COUNT
 *
 * Changes COUNT events, of kinds in turn so that rare ones have their share, and
 * prints them.
 *
 *   tt-forge LOG NEW-LOG -
 *
 * Takes the events from its standard input, a line for each, ascending: position,
 * kind, nested, cpu, size, addr, val, aux (numbers), data (in hex, or -; *N after
 * it: so many times).
 */
#include "log/tt-log.h"

#include <glib.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct Forge {
    GRand *rand;
    TtLogReader *in;
    TtLogWriter *out;
    TtLogEncoder *encoder;
    TtSegBuf *sb;
    GArray *chosen;             /* ordinals, ascending */
    uint8_t data[TT_LOG_DATA_MAX];
} Forge;

static void check(TtStatus st, const TtDiag *diag)
{
    if (st < 0) {
        fprintf(stderr, "tt-forge: %s\n", diag->text);
        exit(1);
    }
}

static uint64_t any_value(Forge *f, uint64_t old)
{
    static const uint64_t special[] = {
        0, 1, 0xfff, 0x1000, 0x7fffffff, 0x80000000, 0xffffffff, 1ull << 32,
        1ull << 46, 1ull << 47, INT64_MAX, 1ull << 63, UINT64_MAX,
    };

    switch (g_rand_int_range(f->rand, 0, 4)) {
    case 0:
        return special[g_rand_int_range(f->rand, 0, G_N_ELEMENTS(special))];
    case 1:
        return old ^ 1ull << g_rand_int_range(f->rand, 0, 64);
    case 2:
        return old + g_rand_int_range(f->rand, -8, 9);
    default:
        return (uint64_t)g_rand_int(f->rand) << 32 | g_rand_int(f->rand);
    }
}

static void change_data(Forge *f, TtEvent *ev)
{
    if (ev->len) {
        memcpy(f->data, ev->data, ev->len);
    }
    ev->data = f->data;
    if (!ev->len || g_rand_int_range(f->rand, 0, 4) == 0) {
        uint32_t old = ev->len;

        ev->len = g_rand_int_range(f->rand, 0, 2) ? old / 2 :
            g_rand_int_range(f->rand, 0, 300);
        for (uint32_t i = old; i < ev->len; i++) {
            f->data[i] = g_rand_int(f->rand);
        }
        return;
    }
    for (unsigned n = g_rand_int_range(f->rand, 1, 5); n; n--) {
        f->data[g_rand_int_range(f->rand, 0, ev->len)] = g_rand_int(f->rand);
    }
}

static void change(Forge *f, TtEvent *ev)
{
    char line[200];

    switch (g_rand_int_range(f->rand, 0, 6)) {
    case 0:
        ev->addr = any_value(f, ev->addr);
        break;
    case 1:
        ev->val = any_value(f, ev->val);
        break;
    case 2:
        ev->aux = any_value(f, ev->aux);
        break;
    case 3:
        ev->cpu = any_value(f, ev->cpu);
        break;
    default:
        change_data(f, ev);
    }
    tt_event_format(ev, line, sizeof(line));
    puts(line);
}

/* Ordinals of @count events: a random kind that occurs, then one of it. */
static void choose(Forge *f, unsigned count)
{
    g_autoptr(GPtrArray) of_kind = g_ptr_array_new_with_free_func(
        (GDestroyNotify)g_array_unref);
    uint32_t ordinal = 0;

    for (unsigned k = 0; k <= TT_EV_KIND_MAX; k++) {
        g_ptr_array_add(of_kind, g_array_new(false, false, sizeof(uint32_t)));
    }
    for (uint64_t i = 0; i < tt_log_reader_n_segments(f->in); i++) {
        TtSegment *seg;
        TtDiag diag;

        check(tt_log_reader_load(f->in, i, &seg, &diag), &diag);
        for (uint32_t e = 0; e < seg->n_events; e++, ordinal++) {
            g_array_append_val(of_kind->pdata[seg->events[e].kind], ordinal);
        }
        tt_segment_unref(seg);
    }
    for (unsigned k = 0; k < of_kind->len; k++) {
        if (!((GArray *)of_kind->pdata[k])->len) {
            g_ptr_array_remove_index(of_kind, k--);
        }
    }
    while (of_kind->len && count--) {
        GArray *a = of_kind->pdata[g_rand_int_range(f->rand, 0, of_kind->len)];
        uint32_t one = g_array_index(a, uint32_t,
                                     g_rand_int_range(f->rand, 0, a->len));

        g_array_append_val(f->chosen, one);
    }
}

static bool is_chosen(const Forge *f, uint32_t ordinal)
{
    for (unsigned i = 0; i < f->chosen->len; i++) {
        if (g_array_index(f->chosen, uint32_t, i) == ordinal) {
            return true;
        }
    }
    return false;
}

static void seal(Forge *f, bool is_last)
{
    TtDiag diag;

    check(tt_log_writer_seal(f->out, tt_log_encoder_end(f->encoder, is_last),
                             &diag), &diag);
}

static void put(Forge *f, const TtEvent *ev)
{
    if (!tt_log_encoder_fits(f->encoder, ev)) {
        seal(f, false);
        tt_log_encoder_begin(f->encoder, f->sb, ev->pos, 0);
    }
    tt_log_encoder_put(f->encoder, ev);
}

static void copy(Forge *f)
{
    uint32_t ordinal = 0;

    for (uint64_t i = 0; i < tt_log_reader_n_segments(f->in); i++) {
        TtSegment *seg;
        TtDiag diag;

        check(tt_log_reader_load(f->in, i, &seg, &diag), &diag);
        tt_log_encoder_begin(f->encoder, f->sb, seg->info.first_pos,
                             seg->info.host_ns);
        for (uint32_t e = 0; e < seg->n_events; e++, ordinal++) {
            TtEvent ev = seg->events[e];

            if (is_chosen(f, ordinal)) {
                change(f, &ev);
            }
            put(f, &ev);
        }
        seal(f, seg->info.last);
        tt_segment_unref(seg);
    }
}

/* One line; its data is in f->data. */
static bool parse(Forge *f, const char *line, TtEvent *ev)
{
    unsigned kind, nested, cpu, size;
    uint32_t once;
    int at = 0;

    *ev = (TtEvent) { .data = f->data };
    if (sscanf(line, "%" SCNu64 " %u %u %u %u %" SCNu64 " %" SCNu64 " %" SCNu32 " %n",
               &ev->pos, &kind, &nested, &cpu, &size, &ev->addr, &ev->val, &ev->aux,
               &at) != 8) {
        return false;
    }
    ev->kind = kind;
    ev->nested = nested;
    ev->cpu = cpu;
    ev->size = size;
    for (line += at; g_ascii_isxdigit(line[0]) && ev->len < sizeof(f->data); line += 2) {
        f->data[ev->len++] = g_ascii_xdigit_value(line[0]) << 4 |
            g_ascii_xdigit_value(line[1]);
    }
    once = ev->len;
    for (long n = *line == '*' ? strtol(line + 1, NULL, 10) : 1;
         n > 1 && ev->len + once <= sizeof(f->data); n--) {
        memcpy(f->data + ev->len, f->data, once);
        ev->len += once;
    }
    return true;
}

static void take_lines(Forge *f)
{
    g_autoptr(GIOChannel) in = g_io_channel_unix_new(0);
    TtEvent ev;
    char *line;

    g_io_channel_set_encoding(in, NULL, NULL);
    tt_log_encoder_begin(f->encoder, f->sb, 0, 0);
    while (g_io_channel_read_line(in, &line, NULL, NULL, NULL) == G_IO_STATUS_NORMAL) {
        if (!parse(f, line, &ev)) {
            fprintf(stderr, "tt-forge: this is no event: %s", line);
            exit(1);
        }
        put(f, &ev);
        g_free(line);
    }
    seal(f, true);
}

int main(int argc, char **argv)
{
    Forge *f = g_new0(Forge, 1);
    TtDiag diag;
    TtIo *io;

    if (argc != 5 && (argc != 4 || strcmp(argv[3], "-"))) {
        fprintf(stderr, "usage: tt-forge LOG NEW-LOG SEED COUNT | LOG NEW-LOG -\n");
        return 2;
    }
    f->rand = g_rand_new_with_seed(strtoul(argv[3], NULL, 0));
    f->chosen = g_array_new(false, false, sizeof(uint32_t));
    f->encoder = tt_log_encoder_new();
    f->sb = tt_segbuf_new();
    check(tt_io_posix_open(argv[1], &io, &diag), &diag);
    check(tt_log_reader_open(io, &f->in, &diag), &diag);
    check(tt_io_posix_create(argv[2], &io, &diag), &diag);
    check(tt_log_writer_new(io, tt_log_reader_uuid(f->in), &f->out, &diag),
          &diag);
    if (argc == 4) {
        take_lines(f);
    } else {
        choose(f, strtoul(argv[4], NULL, 0));
        copy(f);
    }
    tt_log_writer_free(f->out);
    tt_log_reader_free(f->in);
    tt_log_encoder_free(f->encoder);
    tt_segbuf_free(f->sb);
    g_array_unref(f->chosen);
    g_rand_free(f->rand);
    g_free(f);
    return 0;
}
