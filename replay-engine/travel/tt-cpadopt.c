/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Takes the recorder's checkpoints over: those of a whole run, and those of a window,
 * whose replay begins with one of them. They are in the run directory and stay there
 * as they are.
 */
#include "qemu/osdep.h"
#include "travel/tt-cpadopt.h"
#include "hw-tt/memory/tt-memory.h"
#include "io/tt-base.h"
#include "log/tt-log.h"
#include "pages/tt-page.h"
#include "pages/tt-pagestore.h"
#include "replay/tt-replay-exact.h"
#include "replay/tt-replay-log.h"
#include "run/tt-cpstate.h"
#include "run/tt-runstore.h"
#include "session/tt-session.h"
#include "timeline/tt-timeline.h"
#include "travel/tt-cprestore.h"
#include "travel/tt-cptable.h"
#include "tt-cpadopt-int.h"
#include "tt-cprestore-int.h"
#include "tt-cptable-int.h"
#include "tt/hooks.h"
#include "qapi/error.h"
#include "hw/core/cpu.h"
#include "qemu/error-report.h"

bool tt_checkpoints_start_is_verified;

/* Is its place in the log there: sealed before the recorder was killed, and not
 * gone since? */
static bool is_within_log(const TtCheckpointInfo *info)
{
    g_autofree void *blob = NULL;
    TtCpState s;
    TtDiag diag;
    size_t len;

    return info->pos <= tt_replay_end() &&
        tt_pagestore_blob(tt_cptable.pages, info->id, &blob, &len, &diag) == TT_OK &&
        tt_cpstate_decode((TtBytes) { blob, len }, &s, &diag) == TT_OK &&
        s.segment >= tt_log_reader_first(tt_replay_reader()) &&
        s.segment < tt_log_reader_end(tt_replay_reader());
}

/* After it there are checkpoints that cannot be used any more. */
static void say_damage(void)
{
    const TtDiag *d = tt_pagestore_damage(tt_cptable.pages, 0);

    d = d ?: tt_pagestore_damage(tt_cptable.pages, 1);
    if (d) {
        warn_report("tt: some checkpoints of the run are lost, and the replay "
                    "makes its own: %s", d->text);
    }
}

/* Without the start nothing after it could be reached: is all of its RAM
 * there? In the process that records, it has just been written. */
static bool is_start_whole(TtNodeId id, TtDiag *diag)
{
    bool is_beyond = false;
    const TtDiag *said;
    TtStatus s;

    if (tt_past) {
        return true;
    }
    s = tt_pagestore_read(tt_cptable.pages, id, 0, tt_memory_n_pages(),
                          tt_cprestore_put_nowhere, &is_beyond);
    if (s >= 0) {
        return true;
    }
    said = tt_pagestore_read_error(tt_cptable.pages);
    tt_fail(diag, s, "%s", said ? said->text : tt_status_name(s));
    return false;
}

static void forsake_store(void)
{
    tt_pagestore_free(tt_cptable.pages);
    tt_cptable.pages = NULL;
}

static void warn_own(const TtDiag *why)
{
    warn_report("tt: the replay makes its own checkpoints, so the way to a position is long "
                "until it has been near: %s", why->text);
}

/* Takes the recorder's checkpoints over; one at the start is the state we are in. */
bool tt_cpadopt_stored(CPUState *cpu)
{
    g_autofree TtCheckpointInfo *infos = NULL;
    TtDiag diag;
    size_t n, all;
    TtStatus s = tt_runstore_open(tt_session.dir, &tt_session.manifest,
                                  tt_checkpoints_bytes / TT_CHECKPOINT_CACHE,
                                  &tt_cptable.pages, &diag);

    if (s != TT_OK) {
        if (s != TT_END) {
            warn_own(&diag);
        }
        return false;
    }
    say_damage();
    n = tt_pagestore_count(tt_cptable.pages);
    infos = g_new0(TtCheckpointInfo, n + 1);
    n = tt_pagestore_list(tt_cptable.pages, infos, n);
    while ((n > 1 || (n && infos[0].pos)) &&
           !is_within_log(&infos[n - 1])) {
        n--;
    }
    if (!n) {                       /* killed before the first was stored */
        forsake_store();
        return false;
    }
    if (!infos[0].pos && !tt_checkpoints_start_is_verified &&
        !is_start_whole(infos[0].id, &diag)) {
        warn_own(&diag);
        forsake_store();
        return false;
    }
    tt_cptable.has_files = true;
    if (infos[0].pos) {             /* of the user's: the start is ours */
        tt_cptable_take(cpu, true);
        tt_cptable_make_room();
        tt_cptable.start = tt_cptable.base;
    } else {
        g_free(tt_memory_collect_dirty(&all));
        tt_cptable.base = tt_cptable.start = infos[0].id;
        tt_cptable_note_state(cpu, tt_cptable_enter(infos[0].id, 0, true, true));
    }
    for (size_t i = !infos[0].pos; i < n; i++) {
        tt_cptable_enter(infos[i].id, infos[i].pos,
                         infos[i].flags & TT_CHECKPOINT_PINNED, true);
    }
    return true;
}

/* ---- the log holds a window: there is nothing before its checkpoints ---- */

static void enter_window(void)
{
    size_t n = tt_pagestore_count(tt_cptable.pages);
    g_autofree TtCheckpointInfo *infos = g_new0(TtCheckpointInfo, n + 1);

    n = tt_pagestore_list(tt_cptable.pages, infos, n);
    for (size_t i = 0; i < n; i++) {
        if (is_within_log(&infos[i])) {
            tt_cptable_enter(infos[i].id, infos[i].pos,
                             infos[i].flags & TT_CHECKPOINT_PINNED, true);
        }
    }
}

static TtCheckpointId first_point(void)
{
    uint64_t at;
    TtCheckpointId id = tt_timeline_find(tt_cptable.timeline, 0, &at);

    return id ?: tt_timeline_find_after(tt_cptable.timeline, 0, &at);
}

/* The blocks that @id needs are fresh, and zeros as where a restore begins. */
static void make_blocks(TtCheckpointId id)
{
    g_autofree char *why = NULL;
    size_t n;

    if (tt_cprestore_load(tt_cptable_find(id), &why) == TT_OK && !tt_cptable.base) {
        g_free(tt_memory_collect_dirty(&n));
    }
}

/* The VM becomes that of the first checkpoint that can be used. */
static bool begin_in_window(CPUState *cpu, TtDiag *diag)
{
    TtCheckpointId id;
    TtStatus s = tt_runstore_open(tt_session.dir, &tt_session.manifest,
                                  tt_checkpoints_bytes / TT_CHECKPOINT_CACHE,
                                  &tt_cptable.pages, diag);

    if (s != TT_OK) {
        if (s == TT_END) {
            tt_fail(diag, TT_ERR_FORMAT, "it has none");
        }
        return false;
    }
    say_damage();
    tt_cptable.has_files = true;
    enter_window();
    while ((id = first_point())) {
        make_blocks(id);
        switch (tt_cprestore_try(cpu, id)) {
        case TT_RESTORED:
            tt_cptable.start = id;
            return true;
        case TT_RESTORE_NOMEM:
            tt_fail(diag, TT_ERR_NOMEM, "there is not enough memory for the RAM "
                    "of the checkpoint it begins with");
            return false;
        default:
            break;                              /* the next one */
        }
    }
    tt_fail(diag, TT_ERR_FORMAT, "none of its checkpoints can be used");
    return false;
}

void tt_cpadopt_window(CPUState *cpu)
{
    TtDiag why, diag;

    if (!begin_in_window(cpu, &why)) {
        tt_fail(&diag, TT_ERR_FORMAT, "the run holds a window of a recording, and its "
                "replay begins with a checkpoint: %s", why.text);
        if (!tt_cptable.pages) {
            tt_cptable.pages = tt_pagestore_new();
        }
        tt_replay_damaged(&diag);
    }
}
