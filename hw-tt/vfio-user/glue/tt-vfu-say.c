/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What is said of a vfio-user device. */
#include "qemu/osdep.h"
#include "tt-vfu-int.h"
#include "qemu/error-report.h"

void tt_vfu_warn(TtVfu *d, const char *fmt, ...)
{
    g_autofree char *text = NULL;
    va_list args;

    if (!d->unplug) {
        return;         /* while it is made, one sentence says why it is refused */
    }
    va_start(args, fmt);
    text = g_strdup_vprintf(fmt, args);
    va_end(args);
    warn_report("%s '%s': %s", TYPE_TT_VFU, d->path, text);
}
