/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The run that this process records or replays: the mode, the run directory, and
 * the two worlds that there are while the past is shown.
 */
#include "qemu/osdep.h"
#include "session/tt-session.h"
#include "session/tt-ops.h"
#include "session/tt-paths.h"
#include "timeline/tt-timeline.h"
#include "tt/hooks.h"
#include "qapi/error.h"
#include "migration/blocker.h"

#define WORLD_PARTS_MAX 16

int tt_mode;
bool tt_is_ready;
unsigned tt_omit;
bool tt_past;
bool tt_stands_briefly;
TtSession tt_session;

/* ---- the mode ---- */

static void ignore_event(TtEvent *ev)
{
}

static const TtOps nobody = { .event = ignore_event, .answer = ignore_event };
static const TtOps *ops_of[] = {
    [TT_OFF] = &nobody, [TT_RECORD] = &nobody, [TT_REPLAY] = &nobody,
};
const TtOps *tt_ops = &nobody;

void tt_ops_register(int mode, const TtOps *ops)
{
    ops_of[mode] = ops;
    tt_ops = ops_of[tt_mode];
}

void tt_set_mode(int mode)
{
    tt_mode = mode;
    tt_ops = ops_of[mode];
}

/* ---- two worlds ---- */

static struct {
    struct {
        void *state, *aside;
        const void *other;
        size_t size_bytes;
    } part[WORLD_PARTS_MAX];
    unsigned n_parts;
    TtWorldSwapped *swapped[WORLD_PARTS_MAX];
    unsigned n_swapped;
} worlds;

void tt_world_register(void *state, const void *other, size_t size_bytes)
{
    assert(worlds.n_parts < WORLD_PARTS_MAX);
    worlds.part[worlds.n_parts].state = state;
    worlds.part[worlds.n_parts].other = other;
    worlds.part[worlds.n_parts].aside = g_malloc0(size_bytes);
    worlds.part[worlds.n_parts++].size_bytes = size_bytes;
}

void tt_world_notify(TtWorldSwapped *swapped)
{
    assert(worlds.n_swapped < WORLD_PARTS_MAX);
    worlds.swapped[worlds.n_swapped++] = swapped;
}

void tt_world_begin(void)
{
    for (unsigned i = 0; i < worlds.n_parts; i++) {
        if (worlds.part[i].other) {
            memcpy(worlds.part[i].aside, worlds.part[i].other,
                   worlds.part[i].size_bytes);
        } else {
            memset(worlds.part[i].aside, 0, worlds.part[i].size_bytes);
        }
    }
}

void tt_world_swap(void)
{
    for (unsigned i = 0; i < worlds.n_parts; i++) {
        uint8_t *a = worlds.part[i].state, *b = worlds.part[i].aside;

        for (size_t k = 0; k < worlds.part[i].size_bytes; k++) {
            uint8_t byte = a[k];

            a[k] = b[k];
            b[k] = byte;
        }
    }
    tt_set_mode(tt_mode == TT_RECORD ? TT_REPLAY : TT_RECORD);
    for (unsigned i = 0; i < worlds.n_swapped; i++) {
        worlds.swapped[i]();
    }
}

static void __attribute__((constructor)) register_ours(void)
{
    tt_world_register(&tt_session, NULL, sizeof(tt_session));
}

/* ---- the run directory ---- */

void tt_set_dir(const char *dir)
{
    g_autofree char *path = NULL;

    if (dir && *dir) {
        path = tt_path_absolute(dir);
    }
    tt_session.dir = path ? g_intern_string(path) : NULL;
}

bool tt_is_live(Error **errp)
{
    if (!tt_on()) {
        error_setg(errp, "there is no recording or replay: start one first");
    } else if (tt_replaying() && !tt_session.live) {
        error_setg(errp, "the replay has not begun yet");
    } else if (!tt_session.live) {
        error_setg(errp, tt_session.has_begun ? "the recording has ended" :
                   "the recording has not begun yet: it begins when the VM first "
                   "runs (use 'cont')");
    }
    return tt_session.live;
}

/* ---- migration ---- */

static Error *migration_blocker;

bool tt_block_migration(Error **errp)
{
    error_setg(&migration_blocker, "%s is active: its history cannot be migrated "
               "or saved as a snapshot",
               tt_replaying() ? "-tt replay" : "-tt record");
    return migrate_add_blocker(&migration_blocker, errp) == 0;
}

void tt_unblock_migration(void)
{
    migrate_del_blocker(&migration_blocker);
}

/* ---- names ---- */

const char *tt_stop_name(int reason)
{
    static const char *const names[] = {
        [TT_STOP_NONE] = "none", [TT_STOP_TARGET] = "target",
        [TT_STOP_HIT] = "breakpoint", [TT_STOP_START] = "start",
        [TT_STOP_END] = "end", [TT_STOP_DIVERGED] = "diverged",
        [TT_STOP_INTERRUPTED] = "interrupted", [TT_STOP_DAMAGED] = "damaged",
    };

    return names[reason];
}
