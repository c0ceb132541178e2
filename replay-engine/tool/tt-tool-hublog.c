/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tt hub: what it says; what became of each frame, in numbers and in the log; and whose
 * frames a port may send.
 */
#include "tt-tool-hub.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define SAY_US 1000000          /* between two sentences */

void hub_say(Hub *h, const char *fmt, ...)
{
    int64_t now = g_get_monotonic_time();
    va_list ap;

    if (!h->said_us || now - h->said_us >= SAY_US) {
        h->said_us = now;
        va_start(ap, fmt);
        tool_say(fmt, ap);
        va_end(ap);
    }
}

/* ---- the log ---- */

bool hub_log_open(Hub *h, const char *path)
{
    h->log = fopen(path, "we");
    if (!h->log) {
        tool_complain("cannot write %s: %s", path, g_strerror(errno));
        return false;
    }
    setvbuf(h->log, NULL, _IOLBF, 0);           /* whoever follows it sees whole lines */
    return true;
}

static void log_failed(Hub *h)
{
    if (!h->log_has_failed) {
        h->log_has_failed = true;
        tool_complain("cannot write the log: %s; it ends here, and frames are forwarded "
                      "as before", g_strerror(errno));
    }
}

bool hub_log_close(Hub *h)
{
    if (h->log && fclose(h->log)) {
        log_failed(h);
    }
    h->log = NULL;
    return !h->log_has_failed;
}

void hub_settle(Hub *h, const HubFrame *w, unsigned fate)
{
    static const char *const names[] = {
        "goes", "lost", "queue full", "hub full", "peer slow", "peer gone",
        "seen before", "not its own",
    };
    char run[2 * TT_RUN_BYTES + 1];

    *(fate == TT_FATE_GOES ? &h->n_gone : &h->n_lost) += 1;
    if (!h->log || h->log_has_failed) {
        return;
    }
    tt_run_text(run, w->frame.run);
    if (fprintf(h->log, "{\"ns\": %" PRIu64 ", \"from\": %u, \"run\": \"%s\", "
                "\"sequence\": %" PRIu64 ", \"bytes\": %" PRIu32 ", \"to\": %u, "
                "\"fate\": \"%s\", \"after_ns\": %" PRIu64 "}\n", w->came_ns, w->from,
                run, w->frame.seq, w->frame.len, w->to, names[fate],
                w->at_ns - w->came_ns) < 0 || ferror(h->log)) {
        log_failed(h);
    }
}

/* ---- whose frames ---- */

static bool has_run(const HubRuns *r, const uint8_t run[TT_RUN_BYTES])
{
    for (unsigned i = 0; i < MIN(r->n, HUB_RUNS_MAX); i++) {
        if (!memcmp(r->runs[i], run, TT_RUN_BYTES)) {
            return true;
        }
    }
    return false;
}

bool hub_may_send(const Hub *h, unsigned port, const uint8_t run[TT_RUN_BYTES])
{
    if (h->key || has_run(&h->runs[port], run)) {
        return true;
    }
    for (unsigned i = 0; i < TT_SHAPE_PORTS_MAX; i++) {
        if (has_run(&h->runs[i], run)) {
            return false;
        }
    }
    return true;
}

void hub_sends(Hub *h, unsigned port, const uint8_t run[TT_RUN_BYTES])
{
    HubRuns *r = &h->runs[port];

    if (!has_run(r, run)) {
        memcpy(r->runs[r->n++ % HUB_RUNS_MAX], run, TT_RUN_BYTES);
        r->n = r->n == 2 * HUB_RUNS_MAX ? HUB_RUNS_MAX : r->n;
    }
}
