/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Places with a count of branches (TT_EV_BRANCHES before the place): guest code runs up
 * to that branch, at full speed, and only from there to the next one it is looked for the
 * place. If it is not there, the guest did something else than when it was recorded.
 *
 * Both sides count from the last exact place on: there an event was taken out of the log.
 */
#include "qemu/osdep.h"
#include "tt-convert-parts-int.h"
#include "accel-tt/x86/tt-branches.h"
#include "accel-tt/tt-vcpus.h"

static struct {
    uint64_t at_place;          /* the count at the last exact place */
    uint64_t want;              /* from there to the one that is looked for */
    bool is_wanted;
} br;

uint64_t tt_convert_branches(void)
{
    return tt_branches_executed(tt_vcpus_at(0)) - br.at_place;
}

void tt_convert_branches_restart(uint64_t passed)
{
    br.at_place = tt_branches_executed(tt_vcpus_at(0)) - passed;
}

void tt_convert_branches_want(uint64_t n)
{
    br.want = n;
    br.is_wanted = true;
}

void tt_convert_branches_hunt(CPUState *cpu)
{
    if (br.is_wanted && tt_convert_branches() <= br.want) {
        tt_branches_stop_at(cpu, br.at_place + br.want +
                            (tt_convert_branches() == br.want));
    }
}

void tt_convert_branches_end(CPUState *cpu)
{
    br.is_wanted = false;
    tt_branches_stop_at(cpu, TT_BRANCHES_NEVER);
}

TtConvertNear tt_convert_branches_near(void)
{
    uint64_t passed = tt_convert_branches();

    return !br.is_wanted || passed == br.want ? TT_CONVERT_HERE :
        passed < br.want ? TT_CONVERT_BEFORE : TT_CONVERT_BEHIND;
}

char *tt_convert_branches_text(void)
{
    return br.is_wanted ?
        g_strdup_printf("; %" PRIu64 " conditional branches since the last exact place, of "
                        "%" PRIu64 " recorded ones", tt_convert_branches(), br.want) :
        g_strdup("");
}
