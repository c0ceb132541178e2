/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Puts events of the log into effect: asynchronous ones between two instructions,
 * synchronous ones inside the instruction that asks, with the nested ones that
 * belong to them.
 */
#include "qemu/osdep.h"
#include "replay/tt-replay-apply.h"
#include "accel-tt/tt-position.h"
#include "accel-tt/tt-vcpu.h"
#include "accel-tt/tt-vcpus.h"
#include "accel-tt/x86/tt-target.h"
#include "hw-tt/memory/tt-memory.h"
#include "hw-tt/state/tt-disk-refs.h"
#include "io/tt-base.h"
#include "log/tt-log.h"
#include "log/tt-sched.h"
#include "replay/tt-replay-driver.h"
#include "replay/tt-replay-exact.h"
#include "replay/tt-replay-frames.h"
#include "replay/tt-replay-log.h"
#include "replay/tt-stop.h"
#include "session/tt-session.h"
#include "qapi/error.h"
#include "hw/core/cpu.h"

static uint64_t interrupts[TT_VCPUS_MAX];

void tt_replay_interrupted(unsigned vcpu)
{
    interrupts[vcpu]++;
}

const uint64_t *tt_replay_interrupts(void)
{
    return interrupts;
}

static bool has_vcpu(uint64_t index, Error **errp)
{
    if (index >= tt_vcpus_count()) {
        error_setg(errp, "the log names vCPU %" PRIu64 ", but there are only %u",
                   index, tt_vcpus_count());
        return false;
    }
    return true;
}

/* Bytes that a disk of the run, or another run, has: applied as if they stood in the
 * log. */
static bool apply_named(const TtEvent *ev, Error **errp)
{
    static uint8_t bytes[TT_LOG_DATA_MAX];
    TtEvent ram = {
        .kind = TT_EV_RAM, .nested = ev->nested, .pos = ev->pos, .addr = ev->addr,
        .val = ev->val, .data = bytes,
    };
    TtDiag diag;
    TtStatus st = tt_event_bytes(ev) > sizeof(bytes) ?
        tt_fail(&diag, TT_ERR_LIMIT, "the log names too many bytes") :
        ev->kind == TT_EV_DISK ? tt_disk_refs_fill(ev, bytes, &diag) :
        tt_replay_frames_fill(ev, bytes, &diag);

    if (st != TT_OK) {
        error_setg(errp, "%s", diag.text);
        return false;
    }
    ram.len = tt_event_bytes(ev);
    return tt_memory_apply(&ram, errp);
}

bool tt_replay_apply(const TtEvent *ev)
{
    Error *err = NULL;
    bool is_applied, is_damage = false;

    switch (ev->kind) {
    case TT_EV_BLOCK:
        is_damage = !tt_memory_apply(ev, &err);
        break;
    case TT_EV_RAM:
    case TT_EV_RAM_FILL:
    case TT_EV_MAP:
        tt_memory_apply(ev, &err);
        break;
    case TT_EV_DISK:
    case TT_EV_PAYLOAD:
        is_damage = !apply_named(ev, &err);
        break;
    case TT_EV_CPU_FLAG:
        if (has_vcpu(ev->cpu, &err)) {
            tt_target_set_flag(tt_vcpus_at(ev->cpu), ev->addr, ev->val);
        }
        break;
    case TT_EV_CPU_STATE:
        if (has_vcpu(ev->cpu, &err) &&
            tt_target_load(tt_vcpus_at(ev->cpu), ev->data, ev->len, &err)) {
            tt_vcpus_at(ev->cpu)->halted = !!ev->val;
            tt_replay_interrupted(ev->cpu);
        }
        break;
    case TT_EV_CPU_SWITCH:
        if (has_vcpu(ev->addr, &err)) {
            tt_replay_driver->switches(tt_vcpu());
            tt_vcpus_turn_to(tt_vcpus_at(ev->addr));
            current_cpu = tt_vcpu();
        }
        break;
    default:
        error_setg(&err, "event '%s' cannot be applied here",
                   tt_event_kind_name(ev->kind) ?: "unknown");
        break;
    }
    if (is_damage) {                        /* memory is short, or a file is gone */
        TtDiag diag;

        tt_fail(&diag, ev->kind == TT_EV_BLOCK ? TT_ERR_NOMEM : TT_ERR_IO, "%s",
                error_get_pretty(err));
        (tt_event_is_named(ev->kind) ? tt_replay_lacks : tt_replay_damaged)(&diag);
    } else if (err) {
        tt_replay_report("%s", error_get_pretty(err));
    } else {
        tt_session.events++;
    }
    is_applied = !err;
    error_free(err);
    return is_applied;
}

void tt_replay_apply_initial(void)
{
    const TtEvent *ev;

    while ((ev = tt_sched_peek(tt_replay_sched())) && ev->nested && ev->pos == 0) {
        if (!tt_replay_apply(ev)) {
            break;
        }
        tt_sched_pop(tt_replay_sched());
    }
}

/* ---- synchronous events ---- */

static void G_NORETURN leave(void)
{
    tt_vcpu_leave(current_cpu);
}

/* Inside an instruction: a recorder changes a whole vCPU between two turns only. */
bool tt_replay_may_be_nested(const TtEvent *ev)
{
    return ev->kind != TT_EV_CPU_STATE && ev->kind != TT_EV_CPU_SWITCH;
}

static void apply_nested(void)
{
    const TtEvent *ev;

    while ((ev = tt_sched_peek(tt_replay_sched())) && ev->nested) {
        bool is_note = TT_EV_IS_ANNOTATION(ev->kind);

        if (!tt_replay_may_be_nested(ev)) {
            tt_replay_report("the log has event '%s' inside an instruction",
                             tt_event_kind_name(ev->kind));
            leave();
        }
        /* A device's note stands where it was made; a replay can do without. */
        if (!is_note && !tt_replay_apply(ev)) {
            leave();
        }
        tt_sched_pop(tt_replay_sched());
        if (!is_note) {
            tt_replay_driver->changes_inside(current_cpu);
        }
    }
}

void tt_replay_sync(TtEvent *ev)
{
    TtSched *sched = tt_replay_sched();
    const TtEvent *want;
    TtDiag diag;

    apply_nested();
    ev->pos = tt_position();
    switch (tt_sched_match(sched, ev, &diag)) {
    case TT_OK:
        break;
    case TT_END:
    case TT_END_TORN:       /* cut inside an instruction with many inputs */
        tt_replay_cut_end(tt_position());
        if (!tt_replay_ends_in_damage()) {
            tt_stop_at_end();
        }
        leave();
    case TT_ERR_MISMATCH:
        tt_replay_report("%s", diag.text);
        leave();
    default:
        tt_replay_damaged(&diag);
        leave();
    }
    want = tt_sched_peek(sched);
    ev->val = want->val;
    ev->aux = want->aux;
    ev->len = want->len;
    ev->data = want->data;
    if (ev->kind == TT_EV_PIO_OUT || ev->kind == TT_EV_MMIO_ST) {
        tt_fold_output(ev);
    }
    tt_sched_pop(sched);
    tt_session.events++;
}
