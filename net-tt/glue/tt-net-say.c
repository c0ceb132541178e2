/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Sentences about what others send: one now and then, however much they send.
 */
#include "qemu/osdep.h"
#include "tt-net-int.h"
#include "qemu/error-report.h"
#include "qemu/timer.h"

/* Between two sentences of a kind, at first and after a long time. */
#define SAY_MS      5000
#define SAY_MAX_MS  600000

void tt_net_say(TtNetSay *s, const char *fmt, ...)
{
    int64_t now = qemu_clock_get_ms(QEMU_CLOCK_REALTIME);
    TtSaid *said = tt_said_of(s->kinds, fmt);
    g_autofree char *text = NULL;
    uint64_t n_unsaid;
    va_list args;

    if (!tt_said_is_due(said, now)) {
        said->n_unsaid++;
        return;
    }
    va_start(args, fmt);
    text = g_strdup_vprintf(fmt, args);
    va_end(args);
    n_unsaid = tt_said_now(said, now, SAY_MS, SAY_MAX_MS);
    if (n_unsaid) {
        warn_report("%s: %s (and %" PRIu64 " more like this)", s->who, text, n_unsaid);
    } else {
        warn_report("%s: %s", s->who, text);
    }
}

bool tt_net_fails(TtNetFailure *f, const TtNetSay *s, const char *why, bool is_peers,
                  bool is_refused)
{
    const char *fault = is_peers ? why : NULL;
    bool is_new = !f->is_said || g_strcmp0(fault, f->peers_fault);

    if (is_new) {
        g_free(f->peers_fault);
        *f = (TtNetFailure) { .is_said = true, .is_refused = is_refused,
                              .peers_fault = g_strdup(fault) };
        warn_report("%s: not connected: %s; trying again every second", s->who, why);
    }
    return is_new;
}

void tt_net_works(TtNetFailure *f, const TtNetSay *s)
{
    if (f->is_said) {
        info_report("%s: connected", s->who);
    }
    g_free(f->peers_fault);
    *f = (TtNetFailure) { 0 };
}

void tt_net_key_loaded(const char *path)
{
    static bool has_said;

    if (!has_said && path && tt_group_key_is_public(path)) {
        has_said = true;
        warn_report("everybody on this host can read the key of the group, %.200s: chmod 600 "
                    "it", path);
    }
}
