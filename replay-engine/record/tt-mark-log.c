/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Marks of a recording: an event of the log each. Owns the table of those that this
 * process has recorded.
 */
#include "qemu/osdep.h"
#include "record/tt-mark-log.h"
#include "accel-tt/tt-position.h"
#include "log/tt-log.h"
#include "record/tt-flight.h"
#include "record/tt-record.h"
#include "run/tt-marks.h"
#include "session/tt-paths.h"
#include "session/tt-session.h"
#include "qapi/error.h"

static GHashTable *recorded;        /* name -> position; of this process */
static const char *recorded_dir;    /* the run they belong to */

static gboolean is_before_window(gpointer name, gpointer pos, gpointer opaque)
{
    return *(uint64_t *)pos < tt_flight_start();
}

static void remember(const char *name, uint64_t pos)
{
    uint64_t *p = g_new(uint64_t, 1);

    if (!recorded) {
        recorded = g_hash_table_new_full(g_str_hash, g_str_equal, g_free,
                                         g_free);
    }
    if (recorded_dir != tt_session.dir) {
        g_hash_table_remove_all(recorded);
        recorded_dir = tt_session.dir;
    }
    g_hash_table_foreach_remove(recorded, is_before_window, NULL);
    *p = pos;
    g_hash_table_replace(recorded, g_strdup(name), p);
}

void tt_mark_each_recorded(TtMarkFound *found, void *opaque)
{
    GHashTableIter it;
    gpointer name, pos;

    if (!recorded || recorded_dir != tt_session.dir) {
        return;
    }
    g_hash_table_iter_init(&it, recorded);
    while (g_hash_table_iter_next(&it, &name, &pos)) {
        if (*(uint64_t *)pos < tt_flight_start()) {
            g_hash_table_iter_remove(&it);      /* no longer in the window */
            continue;
        }
        found(opaque, name, *(uint64_t *)pos);
    }
}

bool tt_mark_check(const char *name, Error **errp)
{
    switch (tt_mark_name_check(name)) {
    case TT_MARK_NAME_FIT:
        return true;
    case TT_MARK_NAME_BAD:
        error_setg(errp, "'%s' is not a valid name for a mark: use up to %d "
                   "letters, digits, '-', '_' and '.', not beginning with '-'",
                   tt_printable(name), TT_MARK_NAME_MAX);
        return false;
    case TT_MARK_NAME_TAKEN:
        break;
    }
    error_setg(errp, "'%s' is not a valid name for a mark, since it would be taken for a "
               "position: use a name that is not a number, 'start' or 'end'", name);
    return false;
}

bool tt_mark_record(const char *name, uint64_t *pos, Error **errp)
{
    TtEvent ev = {
        .kind = TT_EV_MARK, .data = (const uint8_t *)name, .len = strlen(name),
    };

    if (!tt_is_live(errp) || !tt_mark_check(name, errp)) {
        return false;
    }
    *pos = tt_position();
    tt_record_event(&ev);
    remember(name, *pos);
    return true;
}
