/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What is said of a vfio-user device. */
#include "qemu/osdep.h"
#include "tt-vfu-int.h"
#include "qemu/error-report.h"

static void G_GNUC_PRINTF(2, 0) say(TtVfu *d, const char *fmt, va_list args)
{
    g_autofree char *text = g_strdup_vprintf(fmt, args);

    warn_report("%s '%s': %s", TYPE_TT_VFU, d->path, text);
}

/* While it is made, one sentence says why it is refused. */
static bool is_made(const TtVfu *d)
{
    return d->unplug;
}

void tt_vfu_warn(TtVfu *d, const char *fmt, ...)
{
    va_list args;

    if (is_made(d)) {
        va_start(args, fmt);
        say(d, fmt, args);
        va_end(args);
    }
}

void tt_vfu_warn_once(TtVfu *d, unsigned kind, const char *fmt, ...)
{
    va_list args;

    if (is_made(d) && !(d->warned & kind)) {
        d->warned |= kind;
        va_start(args, fmt);
        say(d, fmt, args);
        va_end(args);
    }
}
