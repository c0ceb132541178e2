/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * TCG's part of branch traces: where control went elsewhere.
 *
 * Blocks that are translated for a traced stretch (TT_HOOK_CF_TRACE) call us at their
 * beginning, with their size. Where that is not the end of the block before, control
 * went elsewhere. The place where the last *instruction* ended counts: a block that is
 * left in its middle is unwound, and tt_trace_unwound says where to. So how the
 * translator cuts blocks makes no difference.
 *
 * Other blocks do not know of it: off, it costs nothing. Traced blocks run at some
 * third to a half of the speed.
 *
 * Context: vCPU thread, BQL held.
 */
#include "qemu/osdep.h"
#include "accel-tt/tcg/tt-tcg-trace.h"
#include "accel-tt/tt-branch-trace.h"
#include "accel-tt/tt-position.h"
#include "accel-tt/tt-vcpus.h"
#include "tt/hooks.h"
#include "hw/core/cpu.h"
#include "cpu.h"
#include "exec/translation-block.h"
#include "exec/helper-proto-common.h"

QEMU_BUILD_BUG_ON(TT_HOOK_CF_TRACE &
                  (CF_COUNT_MASK | CF_NO_GOTO_TB | CF_NO_GOTO_PTR |
                   CF_SINGLE_STEP | CF_MEMI_ONLY | CF_USE_ICOUNT | CF_INVALID |
                   CF_PARALLEL | CF_NOIRQ | CF_PCREL | CF_BP_PAGE |
                   CF_CLUSTER_MASK));

void tt_tcg_report_branches(bool on)
{
    for (unsigned i = 0; i < tt_vcpus_count(); i++) {
        CPUState *cpu = tt_vcpus_at(i);

        if (on) {
            cpu->tcg_cflags |= TT_HOOK_CF_TRACE;
        } else {
            cpu->tcg_cflags &= ~TT_HOOK_CF_TRACE;
        }
    }
}

void tt_trace_unwound(CPUState *cpu)
{
    if (!tt_past) {                     /* the present goes on where it stood */
        tt_traced[cpu->cpu_index].end = cpu->cc->get_pc(cpu);
    }
}

void HELPER(tt_block)(CPUArchState *env, const void *block)
{
    const TranslationBlock *tb = block;
    CPUState *cpu = env_cpu(env);
    uint64_t pc = env->eip + env->segs[R_CS].base;
    TtTracedVcpu *v = &tt_traced[cpu->cpu_index];

    if (pc != v->end || !v->has_begun) {
        /* The instructions of this block are counted already. */
        tt_trace_jumped(cpu, tt_position() - tb->icount, pc);
    }
    v->end = pc + tb->size;
}
