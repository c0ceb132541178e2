/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Sentences about what others send: one now and then, however much they send.
 */
#include "qemu/osdep.h"
#include "tt-net-say-int.h"
#include "qemu/error-report.h"
#include "qemu/timer.h"

#define SAY_MS  5000            /* between two sentences */

void tt_net_say(TtNetSay *s, const char *fmt, ...)
{
    int64_t now = qemu_clock_get_ms(QEMU_CLOCK_REALTIME);
    g_autofree char *text = NULL;
    va_list args;

    if (s->said_ms && now - s->said_ms < SAY_MS) {
        s->unsaid++;
        return;
    }
    va_start(args, fmt);
    text = g_strdup_vprintf(fmt, args);
    va_end(args);
    if (s->unsaid) {
        warn_report("%s: %s (and %u more like this)", s->who, text, s->unsaid);
    } else {
        warn_report("%s: %s", s->who, text);
    }
    s->unsaid = 0;
    s->said_ms = now;
}
