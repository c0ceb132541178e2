/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What was said of each kind; see tt-said.h. */
#include "net-tt/tt-said.h"

#include <glib.h>

TtSaid *tt_said_of(TtSaid kinds[TT_SAID_KINDS], const char *fmt)
{
    unsigned i = 0;

    while (i < TT_SAID_KINDS - 1 && kinds[i].fmt && kinds[i].fmt != fmt) {
        i++;
    }
    if (kinds[i].fmt != fmt) {
        kinds[i] = (TtSaid) { .fmt = fmt };
    }
    return &kinds[i];
}

bool tt_said_is_due(const TtSaid *s, int64_t now)
{
    return !s->wait || now >= s->next;
}

uint64_t tt_said_now(TtSaid *s, int64_t now, int64_t first, int64_t max)
{
    uint64_t n_unsaid = s->n_unsaid;

    /* If none came for as long again as it was to be quiet, this one is new. */
    s->wait = s->wait && (n_unsaid || now - s->next < s->wait) ? MIN(2 * s->wait, max) : first;
    s->next = now + s->wait;
    s->n_unsaid = 0;
    return n_unsaid;
}
