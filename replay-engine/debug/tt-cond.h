/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Conditions of `tt find`: C expressions of registers ($rip), memory (*(u32 *)0x1000)
 * and numbers, as gdb understands them, of integers and pointers. "EXPRESSION at
 * ADDRESS" is evaluated where ADDRESS is about to be executed.
 *
 * Names of a program are no part of an expression: tt_cond_resolve puts addresses in
 * their place before it is parsed, so only the holder of the program's file need know
 * them.
 *
 * Context: any thread; a condition never changes. Text may be hostile: length, depth
 * and number of operands are bounded. Internal API.
 */
#ifndef TT_COND_H
#define TT_COND_H

#include "io/tt-base.h"

#define TT_COND_TEXT_MAX    4096    /* bytes */
#define TT_COND_NODES_MAX   512     /* operators, operands */
#define TT_COND_DEPTH_MAX   64      /* brackets and the like in each other */
#define TT_COND_PLACES_MAX  64

typedef struct TtCond TtCond;

/* Registers as they are; $eax and the like are parts of them. */
typedef enum TtCondReg {
    TT_COND_RAX, TT_COND_RBX, TT_COND_RCX, TT_COND_RDX,
    TT_COND_RSI, TT_COND_RDI, TT_COND_RBP, TT_COND_RSP,
    TT_COND_R8, TT_COND_R9, TT_COND_R10, TT_COND_R11,
    TT_COND_R12, TT_COND_R13, TT_COND_R14, TT_COND_R15,
    TT_COND_RIP,                    /* linear address of the next instruction */
    TT_COND_EFLAGS,
    TT_COND_CS, TT_COND_SS, TT_COND_DS, TT_COND_ES, TT_COND_FS, TT_COND_GS,
    TT_COND_FS_BASE, TT_COND_GS_BASE, TT_COND_K_GS_BASE,
    TT_COND_CR0, TT_COND_CR2, TT_COND_CR3, TT_COND_CR4,
    TT_COND_EFER,
    TT_COND_CPU,                    /* number of the vCPU whose turn it is */
    TT_COND_CPL,                    /* its privilege level, 0 to 3 */
    TT_COND_N_REGS
} TtCondReg;

/* Where registers and memory come from; @len is 1, 2, 4 or 8. False: it cannot be
 * read. */
typedef struct TtCondSource {
    void *opaque;
    bool (*reg)(void *opaque, TtCondReg reg, uint64_t *value);
    bool (*mem)(void *opaque, uint64_t addr, uint8_t *bytes, unsigned len);
} TtCondSource;

/* Where it can become true, and so how it is searched for. */
typedef enum TtCondKind {
    TT_COND_AT_PLACES,      /* where some addresses are executed: breakpoints */
    TT_COND_OF_MEMORY,      /* where memory is written: watchpoints. It may also ask
                             * whose turn it is: $cr3, $cpu */
    TT_COND_OF_REGISTERS,   /* anywhere: each instruction must be looked at */
} TtCondKind;

/*
 * tt_cond_parse: @text without names
 * TT_ERR_FORMAT: it is no condition, and @diag says where and why; TT_ERR_LIMIT: it
 * is too large; TT_ERR_INVALID: nothing in it ever changes, or it always divides by zero.
 * *@out is the caller's.
 */
TtStatus tt_cond_parse(const char *text, TtCond **out, TtDiag *diag);
void tt_cond_free(TtCond *c);                   /* NULL is fine */

TtCondKind tt_cond_kind(const TtCond *c);
/* TT_COND_AT_PLACES: the addresses, ascending, each once; else none. */
const uint64_t *tt_cond_places(const TtCond *c, size_t *n);
/* Is it "EXPRESSION at ADDRESS"? Then each time counts, not each change. */
bool tt_cond_has_at(const TtCond *c);
/* Is it one read of memory, and nothing is computed from that? */
bool tt_cond_is_read(const TtCond *c);

/*
 * tt_cond_place: the memory that it is the value of
 * It is one read of memory, perhaps of some bits of that, or cast: *@addr and *@len, 1 to
 * 8, are the bytes with bits of its value, from the first to the last. TT_ERR_INVALID: it is
 * anything else, or a pointer on the way to it cannot be read.
 */
TtStatus tt_cond_place(const TtCond *c, const TtCondSource *source, uint64_t *addr,
                       unsigned *len);

/*
 * tt_cond_eval: its value, of what stands before "at"
 * TT_ERR_INVALID: something cannot be read, or is divided by zero; *@value is 0 then.
 * What && and || and ?: do not need is not read. Stops at the first that cannot be
 * read; what was read until then has been asked for.
 */
TtStatus tt_cond_eval(const TtCond *c, const TtCondSource *source, uint64_t *value);

/* What is looked for of it; none of these: where it becomes true. */
enum {
    TT_COND_CHANGES = 1,        /* its value changes */
    TT_COND_MONOTONE = 2,       /* it becomes true, and is said to stay so */
    TT_COND_WRITTEN = 4,        /* the memory that it is the value of is written */
};
/*
 * tt_cond_check: can it be searched for like that (@how: some of these), in @from to @to?
 * TT_ERR_INVALID: @diag says why not, and what would do.
 */
TtStatus tt_cond_check(const TtCond *c, unsigned how, uint64_t from, uint64_t to,
                       TtDiag *diag);
/* So many positions can be looked at one by one: some 20 seconds, at 0.4 us each. */
#define TT_COND_STEPS_MAX   50000000

/* ---- names ---- */
/*
 * The replacement of a name: an expression without names, of the caller's; NULL: @why
 * says what is wrong. @chain: the name and what follows of its members, "a.b->c"; what
 * of it was used is set in *@used. @is_address: there is a & in front.
 */
typedef char *TtCondName(void *opaque, const char *chain, size_t *used,
                         bool is_address, TtDiag *why);

/* *@out: g_free. TT_ERR_FORMAT: a name is unknown, or @text is no expression. */
TtStatus tt_cond_resolve(const char *text, TtCondName *name, void *opaque, char **out,
                         TtDiag *diag);

#endif
