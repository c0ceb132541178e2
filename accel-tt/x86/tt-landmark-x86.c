/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Comparing a vCPU of TCG with a place that was recorded under KVM. */
#include "qemu/osdep.h"
#include "accel-tt/x86/tt-landmark-x86.h"
#include "hw/core/cpu.h"
#include "cpu.h"
#include "tcg/helper-tcg.h"
#define XXH_INLINE_ALL
#include <xxhash.h>

static const char *const names[TT_LANDMARK_SYSTEM] = {
    "CR0", "CR2", "CR3", "CR4", "EFER", "GDT base", "IDT base", "ES", "ES base", "CS",
    "CS base", "SS", "SS base", "DS", "DS base", "FS", "FS base", "GS", "GS base",
};

void tt_x86_put_system(const TtX86System *s, uint64_t out[TT_LANDMARK_SYSTEM])
{
    uint64_t *p = out;

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
    *p++ = 0;
    assert(p == out + TT_LANDMARK_SYSTEM);
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

static void get_system(CPUX86State *env, uint64_t out[TT_LANDMARK_SYSTEM])
{
    TtX86System s = {
        .cr0 = env->cr[0], .cr2 = env->cr[2], .cr3 = env->cr[3], .cr4 = env->cr[4],
        .efer = env->efer, .gdt = env->gdt.base, .idt = env->idt.base,
    };

    for (unsigned i = 0; i < 6; i++) {
        s.seg[i].selector = env->segs[i].selector;
        s.seg[i].base = env->segs[i].base;
    }
    tt_x86_put_system(&s, out);
}

static bool is_system_equal(CPUX86State *env, const TtLandmark *p)
{
    uint64_t now[TT_LANDMARK_SYSTEM];

    get_system(env, now);
    return !memcmp(now, p->system, sizeof(now));
}

char *tt_x86_system_difference(CPUState *cpu, const TtLandmark *p)
{
    uint64_t now[TT_LANDMARK_SYSTEM];
    GString *s = g_string_new(NULL);

    get_system(cpu_env(cpu), now);
    for (unsigned i = 0; i < TT_LANDMARK_SYSTEM; i++) {
        if (now[i] != p->system[i]) {
            g_string_append_printf(s, "%s%s is 0x%" PRIx64 ", recorded 0x%" PRIx64,
                                   s->len ? ", " : "", names[i] ?: "a register",
                                   now[i], p->system[i]);
        }
    }
    return g_string_free(s, false);
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
        memcpy(st[i], &env->fpregs[(env->fpstt + i) & 7], 10);  /* as FXSAVE */
    }
    for (unsigned i = 0; i < 16; i++) {
        memcpy(xmm[i], &env->xmm_regs[i], 16);
    }
    return tt_x86_fpu_hash(&f) == want;
}

static uint64_t flags_of(CPUState *cpu)
{
    return cpu_compute_eflags(cpu_env(cpu)) & TT_X86_LANDMARK_FLAGS;
}

unsigned tt_x86_equal_registers(CPUState *cpu, const TtLandmark *p)
{
    unsigned n = flags_of(cpu) == p->flags;

    for (unsigned i = 0; i < MIN(CPU_NB_REGS, TT_LANDMARK_REGS); i++) {
        n += cpu_env(cpu)->regs[i] == p->regs[i];
    }
    return n;
}

char *tt_x86_register_difference(CPUState *cpu, const TtLandmark *p)
{
    static const char *const general[] = {
        "RAX", "RCX", "RDX", "RBX", "RSP", "RBP", "RSI", "RDI", "R8", "R9", "R10",
        "R11", "R12", "R13", "R14", "R15",
    };
    GString *s = g_string_new(NULL);

    for (unsigned i = 0; i < MIN(CPU_NB_REGS, TT_LANDMARK_REGS); i++) {
        if (cpu_env(cpu)->regs[i] != p->regs[i]) {
            g_string_append_printf(s, "%s%s is 0x%" PRIx64 ", recorded 0x%" PRIx64,
                                   s->len ? ", " : "", general[i],
                                   (uint64_t)cpu_env(cpu)->regs[i], p->regs[i]);
        }
    }
    if (flags_of(cpu) != p->flags) {
        g_string_append_printf(s, "%sflags are 0x%" PRIx64 ", recorded 0x%" PRIx64,
                               s->len ? ", " : "", flags_of(cpu), p->flags);
    }
    return g_string_free(s, false);
}

void tt_x86_get_registers(CPUState *cpu, TtLandmark *p)
{
    CPUX86State *env = cpu_env(cpu);

    p->pc = env->eip + env->segs[R_CS].base;
    p->flags = flags_of(cpu);
    for (unsigned i = 0; i < MIN(CPU_NB_REGS, TT_LANDMARK_REGS); i++) {
        p->regs[i] = env->regs[i];
    }
}

TtX86Match tt_x86_match_place(CPUState *cpu, const TtLandmark *p)
{
    CPUX86State *env = cpu_env(cpu);

    for (unsigned i = 0; i < MIN(CPU_NB_REGS, TT_LANDMARK_REGS); i++) {
        if (env->regs[i] != p->regs[i]) {
            return TT_X86_OTHER;
        }
    }
    if (env->eip + env->segs[R_CS].base != p->pc ||
        (cpu_compute_eflags(env) & TT_X86_LANDMARK_FLAGS) != p->flags) {
        return TT_X86_OTHER;
    }
    return !is_system_equal(env, p) ? TT_X86_OTHER_SYSTEM :
        !is_fpu_equal(env, p->fpu_hash) ? TT_X86_OTHER_FPU : TT_X86_SAME;
}
