/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Where a vCPU of KVM stands that left guest code without an exit (K3 in tt-kvm.c).
 *
 * Not every place will do. While an exception or interrupt waits for its delivery the
 * state does not tell all; a fault that was not delivered leaves RF set, which TCG has
 * after an IRET only; and a replay cannot stop within a string instruction with REP.
 * Then the vCPU runs on and is kicked again.
 */
#include "qemu/osdep.h"
#include "accel-tt/tt-vcpu-backend.h"
#include "accel-tt/x86/tt-landmark-x86.h"
#include "tt-kvm-parts-int.h"
#include "cpu.h"
#include "exec/address-spaces.h"
#include "exec/memory.h"
#include "qemu/bswap.h"
#include "qemu/error-report.h"
#include "system/kvm.h"
#include <linux/kvm.h>

#define FAILURES_MANY 3000

static unsigned n_failures;         /* since the last place */

static bool has_event(CPUState *cpu)
{
    struct kvm_vcpu_events e = { 0 };

    return kvm_vcpu_ioctl(cpu, KVM_GET_VCPU_EVENTS, &e) ||
        e.exception.injected || e.exception.pending ||
        e.interrupt.injected || e.nmi.injected || e.nmi.pending;
}

/* An instruction of TCG's has raised it (tt-kvm-once.c), and it is not delivered yet. */
static bool has_exception(CPUState *cpu)
{
    struct kvm_vcpu_events e = { 0 };

    return kvm_vcpu_ioctl(cpu, KVM_GET_VCPU_EVENTS, &e) ||
        e.exception.injected || e.exception.pending;
}

/* Some bytes of code at @pc; they may end with the page. */
static unsigned fetch(CPUState *cpu, uint64_t pc, uint8_t *code, unsigned max)
{
    unsigned n = MIN(max, 4096 - (pc & 4095));
    struct kvm_translation tr = { .linear_address = pc };

    if (kvm_vcpu_ioctl(cpu, KVM_TRANSLATE, &tr) || !tr.valid ||
        address_space_read(&address_space_memory, tr.physical_address,
                           MEMTXATTRS_UNSPECIFIED, code, n) != MEMTX_OK) {
        return 0;
    }
    return n;
}

static bool is_string(uint8_t op)
{
    return (op >= 0x6c && op <= 0x6f) || (op >= 0xa4 && op <= 0xa7) ||
        (op >= 0xaa && op <= 0xaf);
}

/* The length of the string instruction with REP at @pc; 0: there is another; -1: not
 * known. *@other_size: it does not count with the address size of its segment. */
static int rep_bytes(CPUState *cpu, uint64_t pc, bool *other_size)
{
    uint8_t code[15];
    unsigned n = fetch(cpu, pc, code, sizeof(code));
    bool rep = false;

    *other_size = false;

    for (unsigned i = 0; i < n; i++) {
        switch (code[i]) {
        case 0xf2:
        case 0xf3:
            rep = true;
            continue;
        case 0x67:
            *other_size = true;
            continue;
        case 0x26: case 0x2e: case 0x36: case 0x3e: case 0x64: case 0x65:
        case 0x66: case 0x40 ... 0x4f:
            continue;
        default:
            return rep && is_string(code[i]) ? i + 1 : 0;
        }
    }
    return n == 0 || rep ? -1 : 0;
}

/*
 * KVM's emulator leaves a string instruction between its iterations, with RF set, and
 * also with RCX = 0 and RIP still at it. A CPU never stands in the latter place, so the
 * rest is done here: nothing but to go on after it.
 */
TtKvmBoundary tt_kvm_boundary(CPUState *cpu, bool is_behind)
{
    struct kvm_regs r;
    struct kvm_sregs s;
    bool other_size;
    uint64_t mask;
    int bytes;

    if (cpu->vcpu_dirty || !is_behind) {
        return TT_KVM_BETWEEN;      /* the state comes from QEMU, or from an IRET: its RF
                                       is in the frame of an interrupt that comes here */
    }
    if (has_exception(cpu)) {
        return TT_KVM_WITHIN;       /* it is delivered first; KVM_SET_REGS would drop it */
    }
    if (kvm_vcpu_ioctl(cpu, KVM_GET_REGS, &r)) {
        return TT_KVM_UNKNOWN;
    }
    if (!(r.rflags & RF_MASK)) {
        return TT_KVM_BETWEEN;
    }
    if (kvm_vcpu_ioctl(cpu, KVM_GET_SREGS, &s)) {
        return TT_KVM_UNKNOWN;
    }
    bytes = rep_bytes(cpu, s.cs.base + r.rip, &other_size);
    mask = s.cs.l && !other_size ? UINT64_MAX :
        s.cs.l || s.cs.db != other_size ? UINT32_MAX : UINT16_MAX;
    if (bytes < 0 || (bytes && r.rcx & mask)) {
        return TT_KVM_WITHIN;
    }
    r.rip += bytes;
    r.rflags &= ~(uint64_t)RF_MASK;     /* it ends with an instruction, also with one
                                           that KVM skipped */
    return kvm_vcpu_ioctl(cpu, KVM_SET_REGS, &r) ? TT_KVM_UNKNOWN : TT_KVM_BETWEEN;
}

static TtX86Segment segment(const struct kvm_segment *s)
{
    return (TtX86Segment) { .selector = s->selector, .base = s->base };
}

static void put_system(const struct kvm_sregs *s, TtLandmark *p)
{
    TtX86System sys = {
        .cr0 = s->cr0, .cr2 = s->cr2, .cr3 = s->cr3, .cr4 = s->cr4, .efer = s->efer,
        .seg = { segment(&s->es), segment(&s->cs), segment(&s->ss),
                 segment(&s->ds), segment(&s->fs), segment(&s->gs) },
        .gdt = s->gdt.base, .idt = s->idt.base,
    };

    tt_x86_put_system(&sys, p->system);
}

/* Not KVM_GET_FPU: what the CPU left out of XSAVE, since it has its first value, is
 * stale there. The image begins as FXSAVE's does. */
static bool fpu_hash(CPUState *cpu, uint64_t *hash)
{
    struct kvm_xsave x;
    const uint8_t *b = (const uint8_t *)x.region;
    TtX86Fpu fpu;

    if (kvm_vcpu_ioctl(cpu, KVM_GET_XSAVE, &x)) {
        return false;
    }
    fpu = (TtX86Fpu) {
        .control = lduw_le_p(b), .status = lduw_le_p(b + 2), .mxcsr = ldl_le_p(b + 24),
        .is_empty = !b[4], .st = b + 32, .xmm = b + 160,
    };
    *hash = tt_x86_fpu_hash(&fpu);
    return true;
}

/* Whoever wants the vCPU tries again, some thousand times a second. */
static void note_failure(void)
{
    if (++n_failures == FAILURES_MANY) {
        warn_report("tt: the guest has come to no exact place for some time, probably since "
                    "it executes long REP string instructions: timers and the monitor wait");
    }
}

bool tt_kvm_place(CPUState *cpu, TtLandmark *p)
{
    struct kvm_regs r;
    struct kvm_sregs s;
    bool other_size;
    uint64_t fpu;

    if (has_event(cpu) || kvm_vcpu_ioctl(cpu, KVM_GET_REGS, &r) ||
        kvm_vcpu_ioctl(cpu, KVM_GET_SREGS, &s) ||
        !fpu_hash(cpu, &fpu) ||
        r.rflags & RF_MASK || rep_bytes(cpu, s.cs.base + r.rip, &other_size)) {
        note_failure();
        return false;
    }
    n_failures = 0;
    *p = (TtLandmark) {
        .pc = s.cs.base + r.rip, .flags = r.rflags & TT_X86_LANDMARK_FLAGS,
        .regs = { r.rax, r.rcx, r.rdx, r.rbx, r.rsp, r.rbp, r.rsi, r.rdi,
                  r.r8, r.r9, r.r10, r.r11, r.r12, r.r13, r.r14, r.r15 },
        .fpu_hash = fpu,
    };
    p->has_branches = tt_kvm_branches_passed(&p->branches);
    put_system(&s, p);
    return true;
}
