/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Cost of the causal index: a simulated group, in which each member talks to some
 * others, or to all; time and memory to make the index, and of each question.
 *
 *   bench-causal [MEMBERS FRAMES NEIGHBOURS [windows]]   default: 100 2000000 20
 *
 * With windows all logs are those of flight recorders, and lack the end of their runs.
 */
#include "net-tt/tt-causal.h"

#include <glib.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#define IN_FLIGHT 4096
#define QUESTIONS 200

static uint64_t state = 88172645463325252u;

static uint32_t any(uint32_t n)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (state >> 16) % n;
}

static double now(void)
{
    return g_get_monotonic_time() / 1e6;
}

static double megabytes(void)
{
    struct rusage u;

    getrusage(RUSAGE_SELF, &u);
    return u.ru_maxrss / 1024.0;
}

typedef struct Flying {
    uint32_t from, to;
    uint64_t seq;
} Flying;

static void must(TtStatus st, const TtDiag *diag)
{
    if (st) {
        fprintf(stderr, "bench-causal: %s\n", diag->text);
        exit(1);
    }
}

/* Frames stay in flight for a while, and some overtake others. */
static void simulate(TtCausal *c, unsigned members, uint64_t frames, unsigned near,
                     bool has_windows)
{
    g_autofree Flying *air = g_new0(Flying, IN_FLIGHT);
    g_autofree uint64_t *pos = g_new0(uint64_t, members);
    g_autofree uint64_t *seq = g_new0(uint64_t, members);
    TtDiag diag;

    for (unsigned i = 0; has_windows && i < members; i++) {
        tt_causal_begins(c, i, 0);
        tt_causal_lacks_end(c, i);
    }
    for (uint64_t i = 0; i < frames + IN_FLIGHT; i++) {
        Flying *f = &air[any(16) ? i % IN_FLIGHT : any(IN_FLIGHT)];

        if (f->from != f->to) {
            pos[f->to] += any(1000);
            must(tt_causal_delivered(c, f->to, pos[f->to]++, f->from, f->seq, &diag),
                 &diag);
            f->from = f->to;
        }
        if (i < frames) {
            f->from = any(members);
            f->to = (f->from + 1 + any(near)) % members;
            f->seq = seq[f->from]++;
            pos[f->from] += any(1000);
            must(tt_causal_sent(c, f->from, pos[f->from]++, f->seq, &diag), &diag);
        }
    }
}

/* Of windows all cuts but the earliest are known. */
static void ask(TtCausal *c, unsigned members, bool has_windows)
{
    g_autofree uint64_t *at = g_new(uint64_t, members);
    g_autofree uint32_t *clock = g_new(uint32_t, members);
    unsigned n_refused = 0, n = has_windows ? QUESTIONS / 20 : QUESTIONS;
    double begin = now(), first = 0;
    TtDiag diag;

    for (unsigned i = 0; i < n; i++) {
        unsigned run = any(members);
        TtStatus st = tt_causal_cut(c, run, tt_causal_end_of(c, run) * any(1000) / 1000, at,
                                    &diag);

        n_refused += has_windows && st;
        must(has_windows ? TT_OK : st, &diag);
        must(i % 10 ? TT_OK : tt_causal_check_cut(c, at, &diag), &diag);
        first = i ? first : now() - begin;
    }
    printf("  cut    %9.3f ms, the first one %.3f ms; %u of %u refused\n",
           (now() - begin) * 1e3 / n, first * 1e3, n_refused, n);
    begin = now();
    for (unsigned i = 0; i < QUESTIONS; i++) {
        unsigned run = any(members);

        tt_causal_clock(c, run, tt_causal_end_of(c, run) * any(1000) / 1000, clock);
    }
    printf("  clock  %9.3f ms\n", (now() - begin) * 1e3 / QUESTIONS);
    begin = now();
    for (unsigned i = 0; i < QUESTIONS; i++) {
        unsigned a = any(members), b = any(members), part = any(1000);

        tt_causal_order(c, a, tt_causal_end_of(c, a) * part / 1000, b,
                        tt_causal_end_of(c, b) * part / 1000);
    }
    printf("  order  %9.3f ms\n", (now() - begin) * 1e3 / QUESTIONS);
}

int main(int argc, char **argv)
{
    unsigned members = argc > 1 ? atoi(argv[1]) : 100;
    uint64_t frames = argc > 2 ? strtoull(argv[2], NULL, 0) : 2000000;
    unsigned near = argc > 3 ? atoi(argv[3]) : 20;
    bool has_windows = argc > 4 && !strcmp(argv[4], "windows");
    double begin = now(), simulated;
    TtCausal *c;
    TtDiag diag;

    if (members < 2 || members > TT_CAUSAL_RUNS_MAX || near < 1 || near >= members) {
        fprintf(stderr, "usage: bench-causal [MEMBERS FRAMES NEIGHBOURS [windows]]\n");
        return 2;
    }
    c = tt_causal_new(members);
    simulate(c, members, frames, near, has_windows);
    simulated = now();
    printf("%u members, %" PRIu64 " frames, %u neighbours\n", members, frames, near);
    printf("  events %9.3f s (with the simulation)\n", simulated - begin);
    must(tt_causal_seal(c, &diag), &diag);
    printf("  index  %9.3f s, %.0f MB at most\n", now() - simulated, megabytes());
    ask(c, members, has_windows);
    tt_causal_free(c);
    return 0;
}
