/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Speed of the log: encoding an event (the vCPU's part), sealing a segment
 * (the writer thread's part), decoding.
 *
 * The stream is shaped like a Linux boot: mostly readings of the TSC in loops
 * and polled ports, some values of ports, ring-sized and page-sized RAM
 * writes. Prints for each: n, median, best and worst of the rounds.
 *
 * The scheduler is measured on the same stream, as a replay uses it: each event
 * is matched and popped, and the horizon asked for.
 */
#include "log/tt-log.h"
#include "log/tt-sched.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <glib.h>

#define ROUNDS 9
#define N_EVENTS 150000

static const uint8_t uuid[16] = { 1 };
static uint8_t noise[TT_SEG_PAYLOAD_MAX];

static double cpu_seconds(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
    return ts.tv_sec + ts.tv_nsec / 1e9;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

static void report(const char *what, const char *unit, unsigned n,
                   double times[ROUNDS], double scale)
{
    qsort(times, ROUNDS, sizeof(double), by_value);
    printf("%-28s n=%-8u median %8.2f  best %8.2f  worst %8.2f  %s\n", what, n,
           times[ROUNDS / 2] * scale, times[0] * scale,
           times[ROUNDS - 1] * scale, unit);
}

/* ---- streams ---- */

typedef void (*FillFn)(TtEvent *ev, uint32_t i, GRand *rand);

static void fill_tsc(TtEvent *ev, uint32_t i, GRand *rand)
{
    static uint64_t tsc;

    tsc += 72 + 2 * (g_rand_int(rand) & g_rand_int(rand) & 7) +
           (g_rand_int(rand) % 64 ? 0 : 500);
    *ev = (TtEvent) { .kind = TT_EV_TSC, .val = tsc, .pos = 8ull * i };
}

static void fill_poll(TtEvent *ev, uint32_t i, GRand *rand)
{
    *ev = (TtEvent) { .kind = TT_EV_PIO_IN, .addr = 0x3fd, .size = 1,
                      .val = 0x60, .pos = 5ull * i };
}

static void fill_mixed(TtEvent *ev, uint32_t i, GRand *rand)
{
    uint32_t dice = g_rand_int(rand) % 100;

    if (dice < 50) {
        fill_tsc(ev, i, rand);
    } else if (dice < 80) {
        fill_poll(ev, i, rand);
    } else if (dice < 90) {
        *ev = (TtEvent) { .kind = TT_EV_PIO_OUT, .addr = 0x3f8, .size = 1,
                          .val = 'a' + g_rand_int(rand) % 26 };
    } else if (dice < 95) {
        *ev = (TtEvent) { .kind = TT_EV_MMIO_LD, .size = 4,
                          .addr = 0xfee00000 + (dice << 4), .val = dice };
    } else {
        *ev = (TtEvent) { .kind = TT_EV_RAM, .nested = true,
                          .val = 0x1000000 + (g_rand_int(rand) & 0xfff8),
                          .data = noise, .len = dice == 99 ? 64 : 4 };
    }
    ev->pos = 8ull * i;
}

static TtEvent *make_events(FillFn fill)
{
    TtEvent *events = g_new0(TtEvent, N_EVENTS);
    GRand *rand = g_rand_new_with_seed(1);

    for (uint32_t i = 0; i < N_EVENTS; i++) {
        fill(&events[i], i, rand);
    }
    g_rand_free(rand);
    return events;
}

/* Returns the number of events that went into one segment. */
static uint32_t encode(TtLogEncoder *e, TtSegBuf *sb, const TtEvent *events)
{
    uint32_t i = 0;

    tt_log_encoder_begin(e, sb, 0, 0);
    for (; i < N_EVENTS && tt_log_encoder_fits(e, &events[i]); i++) {
        tt_log_encoder_put(e, &events[i]);
    }
    tt_log_encoder_end(e, true);
    return i;
}

/* One log of one segment, in memory. */
static GByteArray *seal(const TtSegBuf *sb, double *seconds)
{
    TtIo *io = tt_io_mem_new(NULL, 0);
    GByteArray *bytes = g_byte_array_new();
    TtLogWriter *w;
    size_t len;

    if (tt_log_writer_new(io, uuid, &w, NULL) != TT_OK) {
        abort();
    }
    double start = cpu_seconds();
    if (tt_log_writer_seal(w, sb, NULL) != TT_OK) {
        abort();
    }
    *seconds = cpu_seconds() - start;
    const uint8_t *written = tt_io_mem_data(io, &len);
    g_byte_array_append(bytes, written, len);
    tt_log_writer_free(w);
    return bytes;
}

static double decode(const GByteArray *bytes)
{
    TtLogReader *r;
    TtSegment *seg;
    double start;

    if (tt_log_reader_open(tt_io_mem_new(bytes->data, bytes->len), &r, NULL) !=
        TT_OK) {
        abort();
    }
    start = cpu_seconds();
    if (tt_log_reader_load(r, 0, &seg, NULL) != TT_OK) {
        abort();
    }
    start = cpu_seconds() - start;
    tt_segment_unref(seg);
    tt_log_reader_free(r);
    return start;
}

static double replay(const GByteArray *bytes)
{
    const TtEvent *ev;
    TtLogReader *r;
    TtSched *s;
    uint64_t sum = 0;

    if (tt_log_reader_open(tt_io_mem_new(bytes->data, bytes->len), &r, NULL) !=
        TT_OK || tt_sched_new(r, &s, NULL) != TT_OK) {
        abort();
    }
    double start = cpu_seconds();
    while ((ev = tt_sched_peek(s))) {
        if (tt_sched_match(s, ev, NULL) != TT_OK) {
            abort();
        }
        sum += tt_sched_horizon(s);
        tt_sched_pop(s);
    }
    start = cpu_seconds() - start;
    if (sum == 1) {
        abort();                /* the sum is used */
    }
    tt_sched_free(s);
    tt_log_reader_free(r);
    return start;
}

static void bench_stream(const char *name, FillFn fill)
{
    TtEvent *events = make_events(fill);
    TtSegBuf *sb = tt_segbuf_new();
    double enc[ROUNDS], sealing[ROUNDS], dec[ROUNDS], sched[ROUNDS];
    char what[64];
    uint32_t n = 0;
    size_t stored = 0;

    for (unsigned i = 0; i < ROUNDS; i++) {
        TtLogEncoder *e = tt_log_encoder_new();
        double start = cpu_seconds();
        n = encode(e, sb, events);
        enc[i] = cpu_seconds() - start;
        GByteArray *bytes = seal(sb, &sealing[i]);
        dec[i] = decode(bytes);
        sched[i] = replay(bytes);
        stored = bytes->len;
        g_byte_array_unref(bytes);
        tt_log_encoder_free(e);
    }
    g_snprintf(what, sizeof(what), "%s: encode", name);
    report(what, "ns/event", n, enc, 1e9 / n);
    g_snprintf(what, sizeof(what), "%s: seal", name);
    report(what, "ns/event", n, sealing, 1e9 / n);
    g_snprintf(what, sizeof(what), "%s: load", name);
    report(what, "ns/event", n, dec, 1e9 / n);
    g_snprintf(what, sizeof(what), "%s: schedule", name);
    report(what, "ns/event", n, sched, 1e9 / n);
    printf("%-28s %.2f bytes/event encoded, %.2f stored\n", "",
           (double)sb->ev_len / n, (double)stored / n);
    tt_segbuf_free(sb);
    g_free(events);
}

/* ---- 40 MB of payload, to a file ---- */

/* @data: TT_SEG_PAYLOAD_MAX bytes, the same for each segment. */
static void write_payload(TtLogWriter *w, TtSegBuf *sb, const uint8_t *data,
                          unsigned n_segments)
{
    TtLogEncoder *e = tt_log_encoder_new();
    TtEvent ev = { .kind = TT_EV_RAM, .nested = true, .len = TT_LOG_DATA_MAX };

    for (unsigned i = 0; i < n_segments; i++) {
        tt_log_encoder_begin(e, sb, 0, 0);
        for (ev.data = data; tt_log_encoder_fits(e, &ev);
             ev.data += ev.len) {
            tt_log_encoder_put(e, &ev);
        }
        tt_log_encoder_end(e, i + 1 == n_segments);
        if (tt_log_writer_seal(w, sb, NULL) != TT_OK) {
            abort();
        }
    }
    tt_log_encoder_free(e);
}

static void bench_payload(const char *name, const uint8_t *data)
{
    g_autofree char *dir = g_dir_make_tmp("tt-bench-XXXXXX", NULL);
    g_autofree char *path = g_build_filename(dir, "log", NULL);
    TtSegBuf *sb = tt_segbuf_new();
    double times[ROUNDS];

    for (unsigned i = 0; i < ROUNDS; i++) {
        TtLogWriter *w;
        TtIo *io;
        if (tt_io_posix_create(path, &io, NULL) != TT_OK ||
            tt_log_writer_new(io, uuid, &w, NULL) != TT_OK) {
            abort();
        }
        double start = cpu_seconds();
        write_payload(w, sb, data, 10);
        times[i] = cpu_seconds() - start;
        tt_log_writer_free(w);
        remove(path);
    }
    report(name, "ms for 40 MiB to a file, user + system", 10, times, 1e3);
    tt_segbuf_free(sb);
    remove(dir);
}

int main(void)
{
    g_autofree uint8_t *text = g_malloc(sizeof(noise));
    GRand *rand = g_rand_new_with_seed(2);

    for (size_t i = 0; i < sizeof(noise); i++) {
        noise[i] = g_rand_int(rand);
        text[i] = "etaoin shrdlu"[g_rand_int(rand) % 13];
    }
    g_rand_free(rand);
    bench_stream("tsc loop", fill_tsc);
    bench_stream("polled port", fill_poll);
    bench_stream("mixed", fill_mixed);
    bench_payload("noise payload", noise);
    bench_payload("text payload", text);
    return 0;
}
