/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fills and uses the undo log of single steps.
 *
 * A step is logged from before guest code runs (tt_travel_ring_runs) until the next one
 * does, or a movement goes back. What cannot be undone by notes is a barrier: nothing
 * before it is kept, and near checkpoints (travel/tt-cpnear.h) serve there as without a log.
 * Barriers are: an event of the log, or an annotation; an output; a flush of a TLB; RAM
 * that something else than a store has written; another map of memory, another vCPU's turn;
 * a trap or work that waits for a vCPU; and sync points, which flush.
 *
 * A step that is no barrier has changed registers, RAM, entries of a TLB, the set of code
 * pages entered, and tt_now.pos. All of that is put back.
 */
#include "qemu/osdep.h"
#include "travel/tt-travel-ring.h"
#include "accel-tt/tt-branch-trace.h"
#include "accel-tt/tt-position.h"
#include "accel-tt/tt-vcpus.h"
#include "hw-tt/memory/tt-memory.h"
#include "hw-tt/memory/tt-memory-watch.h"
#include "replay/tt-replay-log.h"
#include "replay/tt-stop.h"
#include "session/tt-session.h"
#include "timeline/tt-undoring.h"
#include "tt-cptable-int.h"
#include "tt-travel-int.h"
#include "tt/hooks.h"
#include "hw/core/cpu.h"
#include "qapi/error.h"
#include "qemu/error-report.h"
#include "system/cpus.h"
#include "system/runstate.h"

size_t tt_travel_ring_bytes = TT_TRAVEL_RING_BYTES;

/* A movement back by so few positions is one of a walk, and fills the log by as many. */
#define FILL_MIN 64
/* More at once would be felt in one step: some 4 ms. */
#define FILL_MAX 4096

/* What must be the same after a step that can be undone. */
typedef struct Outside {
    TtCursor cursor;
    uint64_t events, output_hash, map_changes;
    CPUState *cpu;
} Outside;

static struct {
    TtUndoRing *ring;
    bool fills;                 /* stores are logged */
    bool is_barred;
    Outside before;
    uint64_t walked;            /* positions that the last movements went back, each by few */
    bool is_filled;             /* by a movement, and was not looked at since */
    uint64_t from;              /* where the open step began */
    bool has_no_memory;         /* said */
} log;

/* For query-tt, which may come from any thread. */
static size_t n_steps;

static void count_steps(void)
{
    qatomic_set(&n_steps, log.ring ? tt_undoring_steps(log.ring) : 0);
}

/* Is all of the vCPUs' state in what is noted? */
static bool is_at_rest(void)
{
    for (unsigned i = 0; i < tt_vcpus_count(); i++) {
        CPUState *cpu = tt_vcpus_at(i);

        if (!cpu_work_list_empty(cpu) || cpu->interrupt_request || cpu->watchpoint_hit ||
            cpu->exception_index != -1) {
            return false;
        }
    }
    return !tt_vcpu()->halted && !tt_insn_counted && !tt_replayer.diverged;
}

static Outside outside(void)
{
    return (Outside) {
        .cursor = tt_sched_tell(tt_replay_sched()), .events = tt_session.events,
        .output_hash = tt_now.output_hash, .map_changes = tt_memory_map_changes(),
        .cpu = tt_vcpu(),
    };
}

static bool has_changed(const Outside *was)
{
    Outside now = outside();

    return now.cursor.segment != was->cursor.segment ||
        now.cursor.index != was->cursor.index || now.events != was->events ||
        now.output_hash != was->output_hash || now.map_changes != was->map_changes ||
        now.cpu != was->cpu;
}

static void stored(uint64_t ram_addr, const void *old, size_t len)
{
    if (old && tt_undoring_is_open(log.ring)) {
        tt_undoring_note(log.ring, TT_OLD_RAM, ram_addr, old, len);
    } else {
        log.is_barred = true;
    }
}

void tt_travel_ring_stop(void)
{
    if (log.fills) {
        tt_memory_log_stores(NULL);
        log.fills = false;
    }
    if (log.ring) {
        tt_undoring_clear(log.ring);
    }
    count_steps();
}

/* From here on, with nothing before. */
static void begin_anew(void)
{
    tt_undoring_clear(log.ring);
    tt_memory_log_stores(stored);
    tt_backend->undo->begin(log.ring, log.fills);
    log.fills = true;
    log.is_barred = false;
}

/* While the log is filled a step is open, so that what cannot be undone shows there. */
static void open_step(void)
{
    tt_undoring_begin(log.ring, tt_now.pos);
    log.before = outside();
    log.from = tt_now.pos;
    count_steps();
}

/* The open step has led here. False: it cannot be undone. Where it has not led to another
 * position yet it stays open. */
static bool end_step(void)
{
    if (log.is_barred || has_changed(&log.before) || !is_at_rest() ||
        !tt_backend->undo->passed()) {
        return false;
    }
    if (tt_now.pos > log.from) {
        tt_undoring_end(log.ring, tt_now.pos);
        count_steps();
    }
    return true;
}

static bool may_log(void)
{
    return tt_travel_ring_bytes && !log.has_no_memory && tt_backend->undo && !tt_trace_is_on &&
        !tt_at_end_exit && tt_remedy(TT_OMIT_FIXED_TLB) &&
        tt_session.manifest.sync_interval;
}

static bool may_stand(void)
{
    return is_at_rest() && tt_now.pos != tt_last_sync_point(tt_now.pos);
}

/* By one position: gdb steps, or a movement fills the log. */
static bool is_single(void)
{
    return tt_now.step_to == tt_now.pos + 1 ||
        (tt_travel.active && tt_travel.fills && tt_travel_stop_at() == tt_now.pos + 1);
}

void tt_travel_ring_runs(CPUState *cpu)
{
    if (!is_single() || !may_log() || !may_stand()) {
        tt_travel_ring_stop();
        return;
    }
    log.ring = log.ring ?: tt_undoring_new(tt_travel_ring_bytes);
    if (!log.ring) {
        log.has_no_memory = true;
        warn_report("tt: not enough memory for the log of single steps (step-memory=%zu): "
                    "steps back take longer", tt_travel_ring_bytes);
        return;
    }
    if (!log.fills || !end_step()) {
        begin_anew();
    }
    if (!tt_undoring_is_open(log.ring)) {
        open_step();
    }
}

/* ---- back ---- */

static void put(void *opaque, uint32_t kind, uint64_t place, const void *old, size_t len)
{
    if (kind == TT_OLD_RAM) {
        tt_memory_put_back(place, old, len);
    } else {
        tt_backend->undo->put(kind, place, old, len);
    }
}

bool tt_travel_ring_back(uint64_t target)
{
    bool is_held;

    if (!log.fills || tt_trace_is_on) {
        return false;
    }
    if (!end_step()) {
        tt_travel_ring_stop();
        return false;
    }
    is_held = tt_undoring_holds(log.ring, target);
    if (is_held) {
        tt_undoring_back(log.ring, target, put, NULL);
        tt_backend->undo->restored();
        tt_now.pos = target;
        tt_session.finished = false;
        tt_cptable_base_before(target);
    }
    count_steps();
    if (!tt_undoring_is_open(log.ring)) {
        open_step();
    }
    return is_held;
}

/* ---- when to fill ---- */

void tt_travel_ring_moves(uint64_t by)
{
    if (log.is_filled) {            /* a barrier each few positions: more was in vain */
        log.walked = MIN(log.walked, log.ring ? tt_undoring_steps(log.ring) : 0);
        log.is_filled = false;
    }
    log.walked = by && by <= FILL_MIN ? MIN(log.walked + by, FILL_MAX) : 0;
}

uint64_t tt_travel_ring_fills_from(uint64_t target)
{
    uint64_t n = MIN(MAX(2 * log.walked, FILL_MIN), FILL_MAX);

    if (!may_log() || !log.walked) {
        return UINT64_MAX;
    }
    log.is_filled = true;
    return target > n ? target - n : 0;
}

size_t tt_travel_ring_steps(void)
{
    return qatomic_read(&n_steps);
}

void tt_travel_ring_close(void)
{
    tt_travel_ring_stop();
    tt_undoring_free(log.ring);
    memset(&log, 0, sizeof(log));
    count_steps();
}

/* Where the VM runs, guest code may be about to note a store. */
bool tt_travel_ring_resize(uint64_t bytes, Error **errp)
{
    if (!tt_replaying()) {
        error_setg(errp, "step-memory is a setting of a replay, or of the past of a "
                   "recording: there is none");
        return false;
    }
    if (bytes > TT_TRAVEL_RING_BYTES_MAX) {
        error_setg(errp, TT_TRAVEL_RING_HELP);
        return false;
    }
    if (runstate_is_running() || tt_travel_active()) {
        error_setg(errp, "the VM is running: stop it before you set step-memory");
        return false;
    }
    tt_travel_ring_close();
    tt_travel_ring_bytes = bytes;
    return true;
}
