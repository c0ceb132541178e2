/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The one who is told what happens in the session. */
#include "qemu/osdep.h"
#include "session/tt-events.h"

const TtEventListener *tt_event_listener;

void tt_listen(const TtEventListener *l)
{
    tt_event_listener = l;
}
