/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Digests of an x86 vCPU: equal states have equal ones.
 */
#include "qemu/osdep.h"
#include "accel-tt/x86/tt-target.h"
#include "run/tt-manifest.h"
#include "session/tt-session.h"
#include "tt-x86-int.h"
#include "hw/core/cpu.h"
#include "cpu.h"
#include "tcg/helper-tcg.h"
#define XXH_INLINE_ALL
#include <xxhash.h>

static uint64_t *put_segment(uint64_t *p, const SegmentCache *s)
{
    *p++ = s->selector;
    *p++ = s->base;
    *p++ = s->limit;
    *p++ = s->flags;
    return p;
}

static uint64_t *put_integer_state(uint64_t *p, CPUX86State *env)
{
    int i;

    for (i = 0; i < CPU_NB_REGS; i++) {
        *p++ = env->regs[i];
    }
    *p++ = env->eip;
    *p++ = cpu_compute_eflags(env);
    for (i = 0; i < 6; i++) {
        p = put_segment(p, &env->segs[i]);
    }
    p = put_segment(p, &env->ldt);
    p = put_segment(p, &env->tr);
    p = put_segment(p, &env->gdt);
    p = put_segment(p, &env->idt);
    for (i = 0; i < 5; i++) {
        *p++ = env->cr[i];
    }
    for (i = 0; i < 8; i++) {
        *p++ = env->dr[i];
    }
    *p++ = env->a20_mask;
    *p++ = env->efer;
    *p++ = env->hflags;
    *p++ = env->hflags2;
    *p++ = env->xcr0;
    *p++ = env->pkru;
    return p;
}

static uint64_t *put_system_state(uint64_t *p, CPUX86State *env)
{
    int i;

    *p++ = env->sysenter_cs;
    *p++ = env->sysenter_esp;
    *p++ = env->sysenter_eip;
    *p++ = env->star;
    *p++ = env->lstar;
    *p++ = env->cstar;
    *p++ = env->fmask;
    *p++ = env->kernelgsbase;
    *p++ = env->tsc_aux;
    *p++ = env->tsc_adjust;
    *p++ = env->tsc_offset;
    *p++ = env->pat;
    *p++ = env->smbase;
    *p++ = env->vm_hsave;
    *p++ = env->vm_vmcb;
    *p++ = env->intercept;
    *p++ = env->int_ctl;
    *p++ = env->mtrr_deftype;
    for (i = 0; i < 11; i++) {
        *p++ = env->mtrr_fixed[i];
    }
    for (i = 0; i < MSR_MTRRcap_VCNT; i++) {
        *p++ = env->mtrr_var[i].base;
        *p++ = env->mtrr_var[i].mask;
    }
    return p;
}

static uint64_t *put_fpu_state(uint64_t *p, CPUX86State *env)
{
    int i;

    *p++ = env->fpstt;
    *p++ = env->fpus;
    *p++ = env->fpuc;
    *p++ = env->mxcsr;
    for (i = 0; i < 8; i++) {
        *p++ = env->fptags[i];
        *p++ = env->fpregs[i].d.low;
        *p++ = env->fpregs[i].d.high;
    }
    return p;
}

/* State that the digests of older runs left out. */
static uint64_t *put_seldom_state(uint64_t *p, CPUX86State *env)
{
    *p++ = tt_x86_pack_unkept(env);
    *p++ = env->fpop;
    *p++ = env->fpip;
    *p++ = env->fpdp;
    *p++ = env->mcg_status;
    *p++ = env->mcg_ctl;
    *p++ = env->mcg_ext_ctl;
    *p++ = XXH3_64bits(env->mce_banks, sizeof(env->mce_banks));
    *p++ = env->msr_ia32_misc_enable;
    *p++ = env->pkrs;
    *p++ = env->bndcs_regs.cfgu;
    *p++ = env->bndcs_regs.sts;
    *p++ = XXH3_64bits(env->bnd_regs, sizeof(env->bnd_regs));
    *p++ = env->intercept_cr_read;
    *p++ = env->intercept_cr_write;
    *p++ = env->intercept_dr_read;
    *p++ = env->intercept_dr_write;
    *p++ = env->intercept_exceptions;
    *p++ = env->nested_cr3;
    *p++ = env->nested_pg_mode;
    *p++ = 0;       /* v_tpr: vmstate's copy of a part of int_ctl, made by saving */
    return p;
}

uint64_t tt_target_digest(CPUState *cpu)
{
    CPUX86State *env = cpu_env(cpu);
    uint64_t words[256], *p = words;

    update_mxcsr_from_sse_status(env);
    p = put_integer_state(p, env);
    p = put_system_state(p, env);
    p = put_fpu_state(p, env);
    *p++ = cpu->halted;
    if (tt_session.manifest.rules & TT_RULE_WHOLE_STATE) {
        p = put_seldom_state(p, env);
    }
    assert(p <= words + ARRAY_SIZE(words));
    *p++ = XXH3_64bits(env->xmm_regs, sizeof(env->xmm_regs));
    *p++ = XXH3_64bits(env->opmask_regs, sizeof(env->opmask_regs));
    return XXH3_64bits(words, (uint8_t *)p - (uint8_t *)words);
}

uint64_t tt_target_fingerprint(CPUState *cpu)
{
    CPUX86State *env = cpu_env(cpu);
    uint64_t flags[4], kept[3];

    tt_target_flags(cpu, flags);
    flags[0] = cpu->halted;
    kept[0] = XXH3_64bits(flags, sizeof(flags));
    kept[1] = env->mcg_ctl;             /* a reset leaves it, and these */
    kept[2] = XXH3_64bits(env->mce_banks, sizeof(env->mce_banks));
    return XXH3_64bits_withSeed(env, offsetof(CPUX86State, end_reset_fields),
                                XXH3_64bits(kept, sizeof(kept)));
}
