/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The search for the wrong write: positions inside of an interval are visited, halving
 * the distance, for the instruction that wrote what differs at its end.
 */
#include "qemu/osdep.h"
#include "accel-tt/tt-vcpus.h"
#include "hw-tt/memory/tt-memory.h"
#include "session/tt-checkpoint.h"
#include "session/tt-session.h"
#include "timeline/tt-timeline.h"
#include "travel/tt-travel.h"
#include "tt-verify-int.h"
#include "tt-verify-say-int.h"
#include "tt-verify-search-int.h"
#include "qapi/error.h"
#include "hw/core/cpu.h"

static void visited(void *opaque, uint64_t pos, int reason);

static void visit(uint64_t pos)
{
    Error *err = NULL;
    bool ok = tt_travel_goto(pos, visited, NULL, &err);

    tt_verify_post(ok, err);
}

static void back_to_the_end(void *opaque, uint64_t pos, int reason)
{
    if (reason == TT_STOP_TARGET) {
        tt_verify_next_interval();
    } else if (reason == TT_STOP_INTERRUPTED) {
        tt_verify_interrupted(pos);
    } else {
        tt_verify_go_on_behind();
    }
}

static void end_search(void)
{
    const TtCheckpointDesc *p = tt_verify_next_point();
    Error *err = NULL;

    if (tt_verify.search == TT_VERIFY_OF_PAGE && tt_verify.found.reg.name &&
        tt_verify.last_equal < p->pos) {
        tt_verify_search(TT_VERIFY_OF_REGISTER);
        return;
    }
    tt_verify.search = TT_VERIFY_NO_SEARCH;
    tt_verify_say_interval(p->pos, tt_verify.how);
    tt_verify.differed = false;
    tt_verify_post(tt_travel_goto(p->pos, back_to_the_end, NULL, &err), err);
}

/* The bytes that are searched for are as the replay had them at the end of the
 * interval. */
static bool is_there(void)
{
    const TtDiffering *d = &tt_verify.found.pages[0];
    const uint8_t *now;

    if (tt_verify.search == TT_VERIFY_OF_REGISTER) {
        return tt_verify_reg_is(&tt_verify.found.reg);
    }
    now = tt_memory_page(NULL, d->page);
    return !memcmp(now + d->offset, d->replayed, TT_VERIFY_BYTES);
}

static void say_unwritten(void)
{
    const TtCheckpointDesc *p = tt_verify_next_point();

    if (tt_verify.search == TT_VERIFY_OF_PAGE) {
        tt_verify_say("nowrite page=%" PRIu64, tt_verify.found.pages[0].page);
    } else {
        tt_verify_say("kept cpu=%u name=%s from=%" PRIu64 " to=%" PRIu64,
                      tt_verify.found.reg.cpu, tt_verify.found.reg.name,
                      tt_verify.low, p->pos);
    }
}

static void say_write(uint64_t pos)
{
    CPUState *cpu = tt_vcpu();
    uint64_t pc = cpu->cc->get_pc(cpu);

    if (tt_verify.search == TT_VERIFY_OF_PAGE) {
        tt_verify_say("write page=%" PRIu64 " position=%" PRIu64 " pc=0x%" PRIx64,
                      tt_verify.found.pages[0].page, pos, pc);
    } else {
        tt_verify_say("wrote cpu=%u name=%s position=%" PRIu64 " pc=0x%" PRIx64,
                      tt_verify.found.reg.cpu, tt_verify.found.reg.name, pos, pc);
    }
    tt_verify_say_state();
    tt_verify_say_events();
}

/* It is not at low and is at high, which follows it or is the end. */
static void halve(uint64_t pos)
{
    if (is_there()) {
        tt_verify.high = MAX(MIN(pos, tt_verify.high), tt_verify.low + 1);
    } else {
        tt_verify.low = MIN(pos, tt_verify.high - 1);
    }
}

static void visited(void *opaque, uint64_t pos, int reason)
{
    bool is_first = tt_verify.high == UINT64_MAX;      /* visit, at the beginning */

    if (reason != TT_STOP_TARGET) {
        tt_verify_say("search position=%" PRIu64 " text=%s", pos, tt_stop_name(reason));
        end_search();
    } else if (is_first && is_there()) {
        say_unwritten();
        end_search();
    } else if (!is_first && tt_verify.low + 1 == tt_verify.high) {
        say_write(pos);
        end_search();
    } else {
        if (is_first) {
            tt_verify.high = tt_verify_next_point()->pos;
        } else {
            halve(pos);
        }
        visit(tt_verify.low + 1 == tt_verify.high ? tt_verify.low :
              tt_verify.low + (tt_verify.high - tt_verify.low) / 2);
    }
}

void tt_verify_search(TtVerifySearch what)
{
    tt_verify.search = what;
    tt_verify.low = what == TT_VERIFY_OF_PAGE ? tt_verify.began : tt_verify.last_equal;
    tt_verify.high = UINT64_MAX;
    visit(tt_verify.low);
}
