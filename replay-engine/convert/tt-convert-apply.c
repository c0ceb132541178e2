/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Events of the log of exits that are put into effect, and written to the new log. */
#include "qemu/osdep.h"
#include "tt-convert-parts-int.h"
#include "accel-tt/tt-position.h"
#include "accel-tt/tt-vcpus.h"
#include "accel-tt/x86/tt-target.h"
#include "replay/tt-replay-apply.h"
#include "session/tt-session.h"

/* KVM's own form of a vCPU's state may have what TCG has not: it is written as TCG
 * keeps it. */
static void put_state(TtEvent *ev)
{
    CPUState *cpu = tt_vcpus_at(0);
    GByteArray *state;

    tt_target_set_flag(cpu, TT_FLAG_A20, 1);
    state = tt_target_save(cpu);
    tt_convert_learn_state(cpu);
    ev->data = state->data;
    ev->len = state->len;
    tt_convert_put(ev);
    g_byte_array_unref(state);
}

bool tt_convert_apply(const TtEvent *ev)
{
    TtEvent copy = *ev;
    uint64_t n = tt_session.events;

    if (tt_convert_learn(ev)) {
        return true;
    }
    /* A note of a device's changes nothing. */
    if (!TT_EV_IS_ANNOTATION(ev->kind) && !tt_replay_apply(ev)) {
        return false;
    }
    tt_session.events = n;          /* it counts when it is put */
    copy.pos = tt_position();
    if (ev->kind == TT_EV_CPU_STATE) {
        put_state(&copy);
    } else {
        tt_convert_put(&copy);
    }
    return true;
}
