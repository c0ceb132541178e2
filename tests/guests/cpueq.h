/*
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * The comparison of TCG with the real CPU: random operands for each instruction form
 * of cpueq-ops.h, and a hash over what they do to registers, flags and memory. The
 * same source is linked into guest "cpueq64" and into a program of this host
 * (tests/cpu-equal), which must print the same.
 *
 * Case N of a form has always the same operands, so a difference can be narrowed down
 * to one case: eq_work() with fewer of them, at last with eq_detail set.
 */
#ifndef CPUEQ_H
#define CPUEQ_H

typedef unsigned char eq_u8;
typedef unsigned int eq_u32;
typedef unsigned long eq_u64;

enum { EQ_ALU, EQ_SHIFT, EQ_ROTATE, EQ_MULDIV, EQ_BITS, EQ_BCD, EQ_STRING, EQ_APPROX,
       EQ_SSE, EQ_X87, EQ_TRANSC, EQ_COMI, EQ_CLASSES };

/* What operands a form gets. */
enum { EQ_ANY, EQ_DIV_8, EQ_DIV_16, EQ_DIV_32, EQ_DIV_64, EQ_IDIV_8, EQ_IDIV_16,
       EQ_IDIV_32, EQ_IDIV_64, EQ_CODE_32, EQ_STRINGS, EQ_FLOATS, EQ_X87_STACK };
#define EQ_KIND_X87 EQ_X87_STACK

enum { EQ_FLAGS = 0x8d5, EQ_DF = 0x400, EQ_MEM = 256 };

/* Known to the assembly in cpueq64-run.c. */
struct eq_state {
    eq_u64 rax, rbx, rcx, rdx, rsi, rdi, flags, mxcsr;  /* 0 to 56 */
    eq_u64 xmm[2][2];                                   /* 64 */
    eq_u8 unused[32];
    eq_u8 fx[512] __attribute__((aligned(16)));         /* 128: FXSAVE's */
    eq_u8 mem[EQ_MEM];                                  /* 640 */
};

struct eq_op {
    int class, kind;
    const char *code;
    void (*run)(void);
};

extern const struct eq_op eq_ops[];
extern const eq_u32 eq_ops_count;
extern const char *const eq_class_names[EQ_CLASSES];

/* The hash over cases @from to @from + @count of a form. @detail: called after each
 * case with its state before and after. */
typedef void eq_detail(eq_u64 n, const struct eq_state *in,
                       const struct eq_state *out);
eq_u64 eq_work(const struct eq_op *op, eq_u64 from, eq_u64 count, eq_detail *detail);

/* Runs one form on a state. The second for 32-bit code. */
void eq_run(struct eq_state *s, void (*run)(void));
void eq_run_x87(struct eq_state *s, void (*run)(void));
void eq_run_32(struct eq_state *s, void (*run)(void));

#endif
