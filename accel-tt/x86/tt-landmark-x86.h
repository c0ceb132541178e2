/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The parts of an x86 vCPU by which a place is known again (log/tt-landmark.h): what
 * KVM and TCG hold alike. Left out: what they represent in different ways (limits and
 * rights of segments, hidden flags), and what follows from the rest.
 *
 * Context: any thread.
 */
#ifndef TT_LANDMARK_X86_H
#define TT_LANDMARK_X86_H

#include "log/tt-landmark.h"

struct CPUState;

/* All flags that the guest can read but RF, and bit 1, which is always set. */
#define TT_X86_LANDMARK_FLAGS 0x267fd5u

typedef struct TtX86Segment {
    uint64_t selector, base;
} TtX86Segment;

typedef struct TtX86System {
    uint64_t cr0, cr2, cr3, cr4, efer;
    TtX86Segment seg[6];        /* ES CS SS DS FS GS */
    uint64_t gdt, idt;
} TtX86System;

typedef struct TtX86Fpu {
    uint64_t control, status, mxcsr;
    bool is_empty;              /* no x87 register is in use */
    const uint8_t *st;          /* 8 of 16 bytes, of which 10 count */
    const uint8_t *xmm;         /* 16 of 16 bytes */
} TtX86Fpu;

void tt_x86_put_system(const TtX86System *s, uint64_t out[TT_LANDMARK_SYSTEM]);
/* For a report: which of them differs, and how. g_free. */
char *tt_x86_system_difference(struct CPUState *cpu, const TtLandmark *p);
uint64_t tt_x86_fpu_hash(const TtX86Fpu *f);

/* How far TCG's @cpu is in the state of @p, RAM left out. The registers are looked at
 * first: some 5 ns when they differ. */
typedef enum TtX86Match {
    TT_X86_OTHER,               /* registers, flags or the address */
    TT_X86_OTHER_SYSTEM,        /* control registers, selectors, bases */
    TT_X86_OTHER_FPU,
    TT_X86_SAME,
} TtX86Match;

/* How many of the general registers and flags are equal, at most 17; for a report. */
unsigned tt_x86_equal_registers(struct CPUState *cpu, const TtLandmark *p);
/* Which of them are not. g_free. */
char *tt_x86_register_difference(struct CPUState *cpu, const TtLandmark *p);

/* General registers, flags and the address, and no more. */
void tt_x86_get_registers(struct CPUState *cpu, TtLandmark *p);

TtX86Match tt_x86_match_place(struct CPUState *cpu, const TtLandmark *p);

#endif
