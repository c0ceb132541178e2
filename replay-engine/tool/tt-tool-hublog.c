/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tt hub: what it says, and what became of each frame, in numbers and in the log.
 */
#include "tt-tool-hub.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>

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
    /* Whoever empties it meanwhile gets no hole. */
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0666);

    h->log = fd >= 0 ? fdopen(fd, "a") : NULL;
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
        "seen before",
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
