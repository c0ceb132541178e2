/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Where the pass begins, or goes on, and the points on its way.
 */
#include "qemu/osdep.h"
#include "convert/tt-convert.h"
#include "convert/tt-convert-files.h"
#include "tt-convert-part-int.h"
#include "tt-convert-parts-int.h"
#include "accel-tt/tt-position.h"
#include "accel-tt/tt-vcpus.h"
#include "hw-tt/memory/tt-memory.h"
#include "log/tt-sched.h"
#include "replay/tt-replay-exact.h"
#include "replay/tt-replay-log.h"
#include "replay/tt-stop.h"
#include "session/tt-session.h"
#include "tt/hooks.h"
#include "qapi/error.h"
#include "qemu/error-report.h"
#include "hw/core/cpu.h"

static bool is_on;

void tt_convert_set_on(void)
{
    is_on = true;
}

bool tt_convert_is_on(void)
{
    return is_on;
}

static const TtEvent *next(void)
{
    return tt_sched_peek(tt_replay_sched());
}

/* ---- points on the way ---- */

static void take_point(CPUState *cpu)
{
    TtConvertPoint p = {
        .at_place = tt_pass.at_place, .last_at = tt_pass.last_at,
        .branches = tt_convert_branches(),
    };

    if (!tt_pass.stops_behind && !tt_convert_owes_half()) {
        tt_convert_known_save(&p);
        p.exits_pos = next() ? next()->pos : 0;
        tt_convert_point_take(cpu, &p, tt_convert_cpuid());
    }
}

/* The next event is the state of the vCPU, so the TLB of whoever begins here is as empty
 * as that of whoever comes by. */
static bool pass_checkpoint(CPUState *cpu)
{
    uint64_t index = tt_pass.checkpoint;

    tt_pass.checkpoint = 0;
    if (!tt_convert_recorded_compare(index)) {
        return false;
    }
    if (tt_convert_part_passes(cpu, index)) {
        tt_convert_end_part();
        return false;
    }
    if (tt_convert_interval_ms) {
        take_point(cpu);
    }
    return true;
}

static void go_on(const TtConvertPoint *p)
{
    tt_convert_set_cpuid(tt_convert_point_restore());
    tt_convert_known_load(p);
    tt_pass.at_place = p->at_place;
    tt_pass.last_at = p->last_at;
    tt_convert_branches_restart(p->branches);
    tt_convert_log_goes_on();
}

static void begin_at_checkpoint(void)
{
    TtDiag diag = { 0 };

    if (!tt_convert_recorded_restore(tt_convert_part_from(), &diag)) {
        error_report("tt: one of the recorder's checkpoints cannot be restored: %s",
                     diag.text);
        exit(1);
    }
    tt_now.pos = tt_now.output_hash = 0;
    tt_now.sync_next = tt_next_sync_point(0);
    tt_session.events = 0;
    tt_vcpus_do_work();
    tt_vcpus_flush();
    tt_pass.at_place = true;
    tt_convert_branches_restart(0);
    tt_convert_log_goes_on();
}

static void join_and_exit(void)
{
    Error *err = NULL;

    tt_convert_tell_began(tt_convert_part_join());
    if (!tt_convert_join(&err)) {
        int status = tt_convert_join_status();

        error_reportf_err(err, "tt: %s", status == TT_CONVERT_AGAIN ? "" :
                          "the run cannot be converted: ");
        exit(status);
    }
    tt_convert_tell_done();
    exit(0);
}

/* ---- start ---- */

bool tt_convert_open(Error **errp)
{
    bool is_part = tt_convert_part_is_on() || tt_convert_part_join();

    tt_pass.find = tt_convert_recorded_find;
    tt_pass.passes = pass_checkpoint;
    tt_pass.take_point = take_point;
    tt_convert_register();
    if ((!is_part && !tt_convert_lock(errp)) || !tt_replay_log_open(errp) ||
        !tt_convert_is_possible(errp)) {
        return false;
    }
    tt_replays_kvm = tt_notes_tables = tt_counts_branches = true;
    tt_convert_recorded_open();
    tt_session.manifest.n_sync_starts = 0;      /* of a pass that was broken off */
    tt_convert_interval_ms = is_part ? 0 : tt_convert_interval_ms;
    if (tt_convert_part_join()) {
        join_and_exit();
    }
    return tt_convert_log_open(is_part ? NULL : tt_convert_point_find(), errp);
}

void tt_convert_start(CPUState *cpu)
{
    tt_convert_tell_start();
    tt_at_end_exit = true;
    tt_session.live = true;
    tt_now.pos = 0;
    tt_now.sync_next = tt_next_sync_point(0);
    tt_vcpus_turn_to(first_cpu);
    while (next() && next()->nested && tt_convert_apply(next())) {
        tt_convert_pop();
    }
    tt_vcpus_do_work();
    if (tt_convert_log_point() && !tt_replayer.diverged) {
        go_on(tt_convert_log_point());
        return;
    }
    if (tt_convert_part_from() && !tt_replayer.diverged) {
        begin_at_checkpoint();
        return;
    }
    tt_pass.at_place = true;
    if (next() && next()->kind == TT_EV_CHECK) {
        tt_convert_annotate(next());
        tt_convert_pop();
    }
    tt_vcpus_flush();
}
