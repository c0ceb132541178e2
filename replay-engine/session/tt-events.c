/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The listener that is told what happens in the session. */
#include "qemu/osdep.h"
#include "session/tt-events.h"
#include "io/tt-base.h"

const TtEventListener *tt_event_listener;

void tt_listen(const TtEventListener *l)
{
    tt_event_listener = l;
}

void tt_tell_tool(const char *tool, const char *fmt, va_list ap)
{
    g_autofree char *line = g_strdup_vprintf(fmt, ap);

    printf("%s %s\n", tool, tt_replace_controls(line, '?'));
    fflush(stdout);
}
