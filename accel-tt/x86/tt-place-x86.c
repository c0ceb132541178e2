/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Comparing a vCPU of TCG with a place that was recorded under KVM. */
#include "qemu/osdep.h"
#include "accel-tt/x86/tt-place-x86.h"
#include "hw/core/cpu.h"
#include "cpu.h"
#include "tcg/helper-tcg.h"
#define XXH_INLINE_ALL
#include <xxhash.h>

uint64_t tt_x86_system_hash(const TtX86System *s)
{
    uint64_t words[32], *p = words;

    *p++ = s->cr0;
    *p++ = s->cr2;
    *p++ = s->cr3;
    *p++ = s->cr4;
    *p++ = s->efer;
    *p++ = s->gdt;
    *p++ = s->idt;
    for (unsigned i = 0; i < 6; i++) {
        *p++ = s->seg[i].selector;
        /* In long mode the bases of ES, CS, SS and DS play no part. */
        *p++ = i >= 4 || !(s->efer & MSR_EFER_LMA) ? s->seg[i].base : 0;
    }
    return XXH3_64bits(words, (uint8_t *)p - (uint8_t *)words);
}

uint64_t tt_x86_fpu_hash(const TtX86Fpu *f)
{
    uint64_t words[4] = { f->control, f->status, f->mxcsr, f->is_empty };
    uint64_t h = XXH3_64bits_withSeed(f->xmm, 16 * 16,
                                      XXH3_64bits(words, sizeof(words)));

    for (unsigned i = 0; !f->is_empty && i < 8; i++) {
        h = XXH3_64bits_withSeed(f->st + 16 * i, 10, h);
    }
    return h;
}

static bool is_system_equal(CPUX86State *env, uint64_t want)
{
    TtX86System s = {
        .cr0 = env->cr[0], .cr2 = env->cr[2], .cr3 = env->cr[3], .cr4 = env->cr[4],
        .efer = env->efer, .gdt = env->gdt.base, .idt = env->idt.base,
    };

    for (unsigned i = 0; i < 6; i++) {
        s.seg[i].selector = env->segs[i].selector;
        s.seg[i].base = env->segs[i].base;
    }
    return tt_x86_system_hash(&s) == want;
}

static bool is_fpu_equal(CPUX86State *env, uint64_t want)
{
    uint8_t st[8][16] = { 0 }, xmm[16][16];
    TtX86Fpu f = { .is_empty = true, .st = st[0], .xmm = xmm[0] };

    update_mxcsr_from_sse_status(env);
    f.control = env->fpuc;
    f.status = (env->fpus & ~0x3800) | (env->fpstt & 7) << 11;
    f.mxcsr = env->mxcsr;
    for (unsigned i = 0; i < 8; i++) {
        f.is_empty &= env->fptags[i];
        memcpy(st[i], &env->fpregs[i], 10);
    }
    for (unsigned i = 0; i < 16; i++) {
        memcpy(xmm[i], &env->xmm_regs[i], 16);
    }
    return tt_x86_fpu_hash(&f) == want;
}

bool tt_x86_is_at_place(CPUState *cpu, const TtPlace *p)
{
    CPUX86State *env = cpu_env(cpu);

    for (unsigned i = 0; i < MIN(CPU_NB_REGS, TT_PLACE_REGS); i++) {
        if (env->regs[i] != p->regs[i]) {
            return false;
        }
    }
    return env->eip + env->segs[R_CS].base == p->pc &&
        (cpu_compute_eflags(env) & TT_X86_PLACE_FLAGS) == p->flags &&
        is_system_equal(env, p->system_hash) && is_fpu_equal(env, p->fpu_hash);
}
