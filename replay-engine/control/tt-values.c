/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Values of options that -tt and the monitor share, and the messages about wrong ones.
 */
#include "qemu/osdep.h"
#include "control/tt-values.h"
#include "flight/tt-crash.h"
#include "travel/tt-travel-ring.h"
#include "qapi/error.h"
#include "qemu/cutils.h"

const char tt_interval_help[] =
    "checkpoint-interval takes seconds, from 0 (no checkpoints) to 1000000";

bool tt_interval_parse(double seconds, uint64_t *ms)
{
    *ms = seconds > 0 ? MAX(seconds * 1000, 1) : 0;
    return seconds >= 0 && seconds <= 1e6;
}

bool tt_window_parse(const char *text, uint64_t *ns, Error **errp)
{
    static const struct {
        const char *name;
        double seconds;
    } units[] = {
        { "", 1 }, { "s", 1 }, { "min", 60 }, { "h", 3600 }, { "d", 86400 },
    };
    const char *unit;
    double n;

    if (!qemu_strtod_finite(text, &unit, &n)) {
        for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
            double s = n * units[i].seconds;

            if (!strcmp(unit, units[i].name) && s >= 0.1 &&
                s <= 1157 * 86400.0) {
                *ns = s * 1e9;
                return true;
            }
        }
    }
    error_setg(errp, "'last' takes a time from 0.1s to 1157d, such as 30s, "
               "10min, 2h or 1d, not '%s'", text);
    return false;
}

bool tt_window_fits(uint64_t ns, uint64_t interval_ms, Error **errp)
{
    if (ns && !interval_ms) {
        error_setg(errp, "a flight recorder (last=) needs checkpoints: leave out "
                   "checkpoint-interval=0");
        return false;
    }
    return true;
}

const char tt_save_on_panic_help[] =
    "save-on-panic is valid with last= only: without it, everything is kept";

bool tt_step_memory_set(const char *text, Error **errp)
{
    uint64_t bytes;

    if (qemu_strtosz(text, NULL, &bytes)) {
        error_setg(errp, TT_TRAVEL_RING_HELP ", not '%s'", text);
        return false;
    }
    return tt_travel_ring_resize(bytes, errp);
}

bool tt_place_is_inside(uint64_t pos, uint64_t first, uint64_t end, Error **errp)
{
    if (pos < first) {
        error_setg(errp, "position %" PRIu64 " is before the window, which begins at "
                   "position %" PRIu64, pos, first);
    } else if (pos > end) {
        error_setg(errp, "position %" PRIu64 " is past the end of the run, which is position "
                   "%" PRIu64, pos, end);
    }
    return pos >= first && pos <= end;
}

bool tt_place_may_be_back(uint64_t count, uint64_t now, uint64_t first, Error **errp)
{
    if (count > now - first) {
        error_setg(errp, "cannot go back that far: there are only %" PRIu64 " positions "
                   "before position %" PRIu64, now - first, now);
    }
    return count <= now - first;
}
