/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Call stacks of a guest, kept from its calls and returns (shadow stacks), and how many
 * instructions began under each.
 *
 * Where a vCPU stands is a node of a tree: a function that was called, below its caller. A
 * call remembers where it stood, under the place in memory of its return address. A return
 * looks there: so it finds its caller after a switch of stacks too, without knowing of
 * threads. Addresses of the lower half are of one address space, which may be another one
 * whenever a kernel in the upper half leaves to the lower; the upper half is the same in all.
 *
 * An interrupt, an exception or a system call puts the code that it enters on top of what
 * it interrupts. The instruction that ends it goes back below the last one of those; to
 * the lower half, below the last one that came from there.
 *
 * Approximate:
 *   - a call that was not seen (before the first block, or under a stack that was copied)
 *     is not on the stack: a return from it leads to the bottom. It counts as a jump if the
 *     innermost call that is known lies shortly above: 64 KiB, in the upper half 8 KiB;
 *   - what an interrupt, a fault or a system call came into is known by its stack, not by its
 *     thread: if several threads have the same, calls that a longjmp leaves may stay;
 *   - calls that a longjmp leaves stay if no caller's return address is within 64 KiB;
 *   - a function that is jumped to stands below the one that jumps, which it replaces. The
 *     block that is executed says which it is;
 *   - a jump out of functions (longjmp), or to another thread other than by a return, counts
 *     for the old stack up to the next call, or the next return;
 *   - a fault in fetching the target of a jump is seen in the lower half only;
 *   - a guest of the guest (vmrun) stands on what entered it, from its bottom each time; its
 *     upper half is taken for that of its host.
 *
 * Memory: at most @max_nodes of the tree, and as many calls. Beyond that, a function counts
 * for its caller; calls that have returned are forgotten, or, if those that have not are more
 * than half, all so far. Deeper than TT_CALLSTACK_DEPTH a call counts for its caller, too.
 *
 * Context: one thread at a time. No I/O. Internal API.
 */
#ifndef TT_CALLSTACK_H
#define TT_CALLSTACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TT_CALLSTACK_VCPUS_MAX  8
#define TT_CALLSTACK_DEPTH      256

typedef struct TtCallstack TtCallstack;
typedef struct TtCallNode TtCallNode;

/* How a block goes on behind its last instruction. */
typedef enum TtCallKind {
    TT_CALL_NEXT,               /* there */
    TT_CALL_JUMP,
    TT_CALL_CALL,
    TT_CALL_RETURN,
    TT_CALL_ENTER,              /* syscall, int: of the kernel */
    TT_CALL_LEAVE,              /* iret, sysret: back from it, or from an interrupt */
    TT_CALL_RESUME,             /* rsm: back from system management mode */
    TT_CALL_GUEST,              /* vmrun: of a guest; its end is what comes behind */
} TtCallKind;

typedef struct TtCallBlock {
    uint64_t at, behind;        /* addresses: its first instruction, and behind its last */
    uint32_t n;                 /* instructions */
    TtCallKind kind;
    uint32_t pops;              /* a return takes so many bytes beside the address */
    TtCallNode *node;           /* the core's, NULL at first: where it was executed last, */
    uint64_t *count;            /* and the counter of that */
} TtCallBlock;

/* What is asked of the vCPU whose block begins, before that executes. Not for each. */
typedef struct TtCallVcpu {
    uint64_t (*sp)(void *opaque);
    uint64_t (*space)(void *opaque);    /* of page tables: a name of the address space */
    /* What the frame of an interrupt says, whose handler begins at @handler; 0: that is where
     * another interrupt came. *@sp: the stack pointer there, and then that of what was
     * interrupted. False: there is no frame: the vCPU has been started. */
    bool (*interrupted)(void *opaque, uint64_t handler, uint64_t *pc, uint64_t *sp);
} TtCallVcpu;

TtCallstack *tt_callstack_new(const TtCallVcpu *vcpu, void *opaque, uint32_t max_nodes);
void tt_callstack_free(TtCallstack *s);         /* NULL is fine */
/* @b begins. @n: instructions that began on this vCPU since the last call for it; @b stays
 * where it is until the end. @n_interrupts: that came in between. O(1), but for a jump out of
 * many functions. */
void tt_callstack_block(TtCallstack *s, unsigned vcpu, TtCallBlock *b, uint64_t n,
                        uint64_t n_interrupts);
/* No block begins any more; @n as above. */
void tt_callstack_end(TtCallstack *s, unsigned vcpu, uint64_t n);
/* All that was counted, in any order: the functions called, outermost first (@depth may be
 * 0), the block, and how many of its instructions began. */
void tt_callstack_each(const TtCallstack *s,
                       void (*found)(void *opaque, const uint64_t *functions,
                                     unsigned depth, uint64_t block, uint64_t count),
                       void *opaque);

/* Of x86: how the instruction with these bytes goes on. *@pops: see TtCallBlock. */
TtCallKind tt_callstack_x86_kind(const uint8_t *bytes, size_t n, uint32_t *pops);

#endif
