/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Call stacks from calls and returns. */
#include "plugins-tt/stack/tt-callstack.h"

#include <glib.h>
#include <string.h>

/* ---- a guest: blocks of five bytes, with two instructions ---- */

#define KERNEL 0xffffffff80000000ull

typedef struct Guest {
    TtCallstack *stacks;
    uint64_t sp, space;
    uint64_t interrupted_pc, interrupted_sp;    /* 0: no frame */
    uint64_t outer_pc, outer_sp;                /* of the handler that was interrupted */
    GPtrArray *blocks;
    TtCallBlock *last[2];
    GHashTable *seen;           /* "functions@block" -> count */
} Guest;

static uint64_t sp_of(void *opaque)
{
    return ((Guest *)opaque)->sp;
}

static uint64_t space_of(void *opaque)
{
    return ((Guest *)opaque)->space;
}

static bool interrupted(void *opaque, uint64_t handler, uint64_t *pc, uint64_t *sp)
{
    Guest *g = opaque;

    g_assert_cmpuint(*sp, ==, handler ? g->sp : g->interrupted_sp);
    *pc = handler ? g->interrupted_pc : g->outer_pc;
    *sp = handler ? g->interrupted_sp : g->outer_sp;
    return *pc;
}

static const TtCallVcpu ops = { sp_of, space_of, interrupted };

static void begin(Guest *g, uint32_t max_nodes)
{
    *g = (Guest) { .sp = 0x1000, .space = 1 };
    g->stacks = tt_callstack_new(&ops, g, max_nodes);
    g->blocks = g_ptr_array_new_with_free_func(g_free);
    g->seen = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
}

/* Executes a block that ends in @kind, of which @done instructions began on vCPU @vcpu when
 * the next one begins. */
static void on(Guest *g, unsigned vcpu, uint64_t at, TtCallKind kind, unsigned irqs,
               unsigned done)
{
    TtCallBlock *b = g_new0(TtCallBlock, 1), *last = g->last[vcpu];

    *b = (TtCallBlock) { .at = at, .behind = at + 5, .n = 2, .kind = kind };
    g_ptr_array_add(g->blocks, b);
    tt_callstack_block(g->stacks, vcpu, b, last ? done : 0, irqs);
    g->last[vcpu] = b;
}

static void run(Guest *g, uint64_t at, TtCallKind kind)
{
    on(g, 0, at, kind, 0, 2);
}

static void note(void *opaque, const uint64_t *functions, unsigned depth, uint64_t block,
                 uint64_t count)
{
    Guest *g = opaque;
    GString *s = g_string_new(NULL);

    for (unsigned i = 0; i < depth; i++) {
        g_string_append_printf(s, "%s%" G_GINT64_MODIFIER "x", i ? ";" : "", functions[i]);
    }
    g_string_append_printf(s, "@%" G_GINT64_MODIFIER "x", block);
    g_assert_false(g_hash_table_contains(g->seen, s->str));
    g_hash_table_insert(g->seen, g_string_free(s, false), GUINT_TO_POINTER(count));
}

static void end(Guest *g)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(g->last); i++) {
        tt_callstack_end(g->stacks, i, g->last[i] ? 2 : 0);
    }
    tt_callstack_each(g->stacks, note, g);
}

static void saw(Guest *g, const char *stack, unsigned count)
{
    unsigned n = GPOINTER_TO_UINT(g_hash_table_lookup(g->seen, stack));

    if (n != count) {
        g_test_message("%s: %u instead of %u", stack, n, count);
    }
    g_assert_cmpuint(n, ==, count);
}

static void finish(Guest *g)
{
    tt_callstack_free(g->stacks);
    g_ptr_array_unref(g->blocks);
    g_hash_table_destroy(g->seen);
}

/* ---- tests ---- */

/* main calls f, which calls g twice. */
static void test_calls(void)
{
    Guest g;

    begin(&g, 100);
    run(&g, 0x100, TT_CALL_CALL);
    g.sp = 0xff8;
    run(&g, 0x200, TT_CALL_CALL);
    for (int i = 0; i < 2; i++) {
        g.sp = 0xff0;
        run(&g, 0x300, TT_CALL_JUMP);
        run(&g, 0x310, TT_CALL_RETURN);
        g.sp = 0xff8;
        run(&g, i ? 0x20a : 0x205, i ? TT_CALL_RETURN : TT_CALL_CALL);
    }
    g.sp = 0x1000;
    run(&g, 0x105, TT_CALL_NEXT);
    end(&g);
    saw(&g, "@100", 2);
    saw(&g, "200@200", 2);
    saw(&g, "200;300@300", 4);
    saw(&g, "200;300@310", 4);
    saw(&g, "200@205", 2);
    saw(&g, "200@20a", 2);
    saw(&g, "@105", 2);
    g_assert_cmpuint(g_hash_table_size(g.seen), ==, 7);
    finish(&g);
}

/* 32-bit addresses; and a return that takes arguments off the stack. */
static void test_narrow(void)
{
    Guest g;

    begin(&g, 100);
    run(&g, 0x100, TT_CALL_CALL);
    g.sp = 0xffc;
    run(&g, 0x200, TT_CALL_RETURN);
    g.last[0]->pops = 12;
    g.sp = 0x100c;
    run(&g, 0x105, TT_CALL_NEXT);
    end(&g);
    saw(&g, "200@200", 2);
    saw(&g, "@105", 2);
    finish(&g);
}

/* A call of long ago, one word farther, returned to the same place. */
static void test_narrow_stale(void)
{
    Guest g;

    begin(&g, 100);
    g.sp = 0xff8;
    run(&g, 0x500, TT_CALL_CALL);
    run(&g, 0x200, TT_CALL_RETURN);
    g.sp = 0xffc;
    run(&g, 0x505, TT_CALL_JUMP);
    g.sp = 0x1008;
    run(&g, 0x100, TT_CALL_CALL);
    g.sp = 0x1004;
    run(&g, 0x500, TT_CALL_CALL);
    g.sp = 0xffc;
    run(&g, 0x200, TT_CALL_RETURN);
    g.sp = 0x1000;
    run(&g, 0x505, TT_CALL_NEXT);
    end(&g);
    saw(&g, "@505", 2);
    saw(&g, "500@505", 2);
    finish(&g);
}

/* A thread is switched away from inside of f, and comes back; the other one is not known,
 * then it is. */
static void test_switch(void)
{
    Guest g;

    begin(&g, 100);
    run(&g, KERNEL + 0x100, TT_CALL_CALL);      /* main: f */
    g.sp = KERNEL + 0x1000;
    run(&g, KERNEL + 0x200, TT_CALL_CALL);      /* f: switch */
    g.sp -= 8;
    run(&g, KERNEL + 0x300, TT_CALL_RETURN);    /* to a stack that was made by hand */
    g.sp = KERNEL + 0x9000;
    run(&g, KERNEL + 0x400, TT_CALL_CALL);      /* the other thread: switch */
    g.sp -= 8;
    g.space = 2;
    run(&g, KERNEL + 0x300, TT_CALL_RETURN);
    g.sp = KERNEL + 0x1000;
    run(&g, KERNEL + 0x205, TT_CALL_CALL);      /* f goes on: switch */
    g.sp -= 8;
    run(&g, KERNEL + 0x300, TT_CALL_RETURN);
    g.sp = KERNEL + 0x9000;
    run(&g, KERNEL + 0x405, TT_CALL_NEXT);
    end(&g);
    saw(&g, "ffffffff80000200;ffffffff80000300@ffffffff80000300", 4);
    saw(&g, "@ffffffff80000400", 2);
    saw(&g, "ffffffff80000300@ffffffff80000300", 2);
    saw(&g, "ffffffff80000200@ffffffff80000205", 2);
    saw(&g, "@ffffffff80000405", 2);
    finish(&g);
}

/* Between a call and the first instruction of what it calls, and right behind a return. */
static void test_interrupts(void)
{
    Guest g;

    begin(&g, 100);
    run(&g, 0x100, TT_CALL_CALL);
    g.sp = 0xfd0;
    g.interrupted_pc = 0x200;
    g.interrupted_sp = 0xff8;
    on(&g, 0, 0x900, TT_CALL_LEAVE, 1, 2);
    g.sp = 0xff8;
    run(&g, 0x200, TT_CALL_RETURN);
    g.sp = 0xfd8;
    g.interrupted_pc = 0x105;
    g.interrupted_sp = 0x1000;
    on(&g, 0, 0x900, TT_CALL_LEAVE, 1, 2);
    g.sp = 0x1000;
    run(&g, 0x105, TT_CALL_NEXT);
    end(&g);
    saw(&g, "200;900@900", 2);
    saw(&g, "200@200", 2);
    saw(&g, "900@900", 2);
    saw(&g, "@105", 2);
    finish(&g);
}

/* At the first instruction of what a fault enters. */
static void test_interrupted_fault(void)
{
    Guest g;

    begin(&g, 100);
    run(&g, 0x100, TT_CALL_JUMP);
    g.interrupted_pc = 0x800;
    g.interrupted_sp = 0xff0;
    on(&g, 0, 0x900, TT_CALL_LEAVE, 1, 1);
    run(&g, 0x800, TT_CALL_LEAVE);
    run(&g, 0x102, TT_CALL_NEXT);
    end(&g);
    saw(&g, "@100", 1);
    saw(&g, "800;900@900", 2);
    saw(&g, "800@800", 2);
    saw(&g, "@102", 2);
    finish(&g);
}

/* A fault in the middle of a block, which is then executed from there; and a system call,
 * in which the kernel switches to another process and back. */
static void test_kernel(void)
{
    Guest g;

    begin(&g, 100);
    run(&g, 0x100, TT_CALL_CALL);
    g.sp = 0xff8;
    run(&g, 0x200, TT_CALL_JUMP);
    on(&g, 0, KERNEL + 0x900, TT_CALL_LEAVE, 0, 1);
    run(&g, 0x202, TT_CALL_ENTER);
    run(&g, KERNEL + 0x500, TT_CALL_CALL);      /* the system call: switch */
    g.sp = KERNEL + 0x1000;
    run(&g, KERNEL + 0x600, TT_CALL_RETURN);
    g.sp = KERNEL + 0x9000;
    g.space = 2;
    run(&g, KERNEL + 0x700, TT_CALL_LEAVE);     /* a new process */
    g.sp = 0xff8;                               /* with a stack at the same place */
    run(&g, 0x800, TT_CALL_RETURN);
    g.sp = 0x1000;
    run(&g, 0x105, TT_CALL_ENTER);
    run(&g, KERNEL + 0x500, TT_CALL_CALL);
    g.sp = KERNEL + 0x8ff8;
    run(&g, KERNEL + 0x600, TT_CALL_RETURN);
    g.sp = KERNEL + 0x1008;
    run(&g, KERNEL + 0x505, TT_CALL_LEAVE);
    g.space = 1;
    g.sp = 0xff8;
    run(&g, 0x207, TT_CALL_RETURN);
    g.sp = 0x1000;
    run(&g, 0x105, TT_CALL_NEXT);
    end(&g);
    saw(&g, "200@200", 1);
    saw(&g, "200;ffffffff80000900@ffffffff80000900", 2);
    saw(&g, "200@202", 2);
    saw(&g, "200;ffffffff80000500;ffffffff80000600@ffffffff80000600", 2);
    saw(&g, "@800", 2);
    saw(&g, "200;ffffffff80000500@ffffffff80000505", 2);
    saw(&g, "200@207", 2);
    saw(&g, "@105", 4);
    finish(&g);
}

/* A thunk overwrites its return address: what it goes to stands in its place, calls, and
 * returns. */
static void test_retpoline(void)
{
    Guest g;

    begin(&g, 100);
    run(&g, 0x100, TT_CALL_CALL);
    g.sp = 0xff8;
    run(&g, 0x200, TT_CALL_CALL);
    g.sp = 0xff0;
    run(&g, 0x300, TT_CALL_RETURN);
    g.sp = 0xff8;
    run(&g, 0x400, TT_CALL_CALL);
    g.sp = 0xff0;
    run(&g, 0x500, TT_CALL_RETURN);
    g.sp = 0xff8;
    run(&g, 0x405, TT_CALL_RETURN);
    g.sp = 0x1000;
    run(&g, 0x105, TT_CALL_NEXT);
    end(&g);
    saw(&g, "400@400", 2);
    saw(&g, "400;500@500", 2);
    saw(&g, "400@405", 2);
    saw(&g, "@105", 2);
    finish(&g);
}

/* Calls that never return, since the stack pointer goes back: of the next call they are no
 * callers. */
static void test_dropped(void)
{
    Guest g;

    begin(&g, 100);
    run(&g, 0x100, TT_CALL_CALL);
    g.sp = 0xff8;
    run(&g, 0x200, TT_CALL_CALL);
    for (uint64_t i = 1; i < 9; i++) {
        g.sp -= 8;
        run(&g, 0x200 + 16 * i, i < 8 ? TT_CALL_CALL : TT_CALL_JUMP);
    }
    g.sp = 0xff8;
    run(&g, 0x290, TT_CALL_CALL);       /* of the function at 200h, again */
    g.sp = 0xff0;
    run(&g, 0x400, TT_CALL_RETURN);
    g.sp = 0xff8;
    run(&g, 0x295, TT_CALL_RETURN);
    g.sp = 0x1000;
    run(&g, 0x105, TT_CALL_NEXT);
    end(&g);
    saw(&g, "200;210;220@220", 2);
    saw(&g, "200;400@400", 2);
    saw(&g, "200@295", 2);
    saw(&g, "@105", 2);
    finish(&g);
}

/* A callee that moves its return address (and what it saved below it) to another place. */
static void test_moved(void)
{
    Guest g;

    begin(&g, 100);
    run(&g, KERNEL + 0x100, TT_CALL_CALL);
    g.sp = KERNEL + 0xff8;
    run(&g, KERNEL + 0x200, TT_CALL_CALL);
    g.sp = KERNEL + 0xff0;
    run(&g, KERNEL + 0x300, TT_CALL_RETURN);
    g.sp = KERNEL + 0xf88;
    run(&g, KERNEL + 0x205, TT_CALL_JUMP);
    g.sp = KERNEL + 0xff8;
    run(&g, KERNEL + 0x20a, TT_CALL_RETURN);
    g.sp = KERNEL + 0x1000;
    run(&g, KERNEL + 0x105, TT_CALL_NEXT);
    end(&g);
    saw(&g, "ffffffff80000200;ffffffff80000300@ffffffff80000300", 2);
    saw(&g, "ffffffff80000200@ffffffff80000205", 2);
    saw(&g, "ffffffff80000200@ffffffff8000020a", 2);
    saw(&g, "@ffffffff80000105", 2);
    finish(&g);
}

/* The kernel makes a frame of a signal below that of a function; the handler calls, and
 * returns to what asks the kernel to go on. In the upper half that distance is a new stack. */
static void test_signal(void)
{
    Guest g;

    begin(&g, 100);
    run(&g, 0x20100, TT_CALL_CALL);
    g.sp = 0xff8;
    run(&g, 0x200, TT_CALL_JUMP);
    on(&g, 0, KERNEL + 0x900, TT_CALL_LEAVE, 0, 1);
    g.sp = 0xff8 - 0x800;
    run(&g, 0x700, TT_CALL_CALL);       /* the handler */
    g.sp -= 8;
    run(&g, 0x750, TT_CALL_RETURN);
    g.sp += 8;
    run(&g, 0x705, TT_CALL_RETURN);
    g.sp += 8;
    run(&g, 0x780, TT_CALL_ENTER);      /* sigreturn */
    run(&g, KERNEL + 0x500, TT_CALL_LEAVE);
    g.sp = 0xff8;
    run(&g, 0x202, TT_CALL_RETURN);
    g.sp = 0x1000;
    run(&g, 0x20105, TT_CALL_ENTER);
    g.sp = KERNEL + 0x8000;
    run(&g, KERNEL + 0x500, TT_CALL_CALL);
    g.sp -= 8;
    run(&g, KERNEL + 0x600, TT_CALL_RETURN);
    g.sp = KERNEL + 0x4000;
    run(&g, KERNEL + 0x650, TT_CALL_NEXT);
    end(&g);
    saw(&g, "200@700", 2);
    saw(&g, "200;750@750", 2);
    saw(&g, "200@780", 2);
    saw(&g, "200;ffffffff80000500@ffffffff80000500", 2);
    saw(&g, "200@202", 2);
    saw(&g, "@20105", 2);
    saw(&g, "@ffffffff80000650", 2);
    finish(&g);
}

/* A longjmp, 50 times, after a system call in the same function, and with an interrupt behind
 * it: it does not nest. */
static void test_longjmp_after_call(void)
{
    Guest g;

    begin(&g, 1000);
    run(&g, 0x100, TT_CALL_CALL);
    for (int i = 0; i < 50; i++) {
        g.sp = 0xff8;
        run(&g, 0x200, TT_CALL_CALL);
        g.sp = 0xff0;
        run(&g, 0x300, TT_CALL_ENTER);
        run(&g, KERNEL + 0x500, TT_CALL_LEAVE);
        run(&g, 0x305, TT_CALL_JUMP);
        g.sp = 0xff8;
        run(&g, 0x205, TT_CALL_NEXT);
        run(&g, KERNEL + 0x900, TT_CALL_LEAVE);
    }
    end(&g);
    saw(&g, "200@200", 2);
    saw(&g, "200;300@200", 98);
    saw(&g, "200;300@300", 100);
    saw(&g, "200;300@305", 100);
    saw(&g, "200;300@205", 100);
    finish(&g);
}

/* Two threads are in the same function, of which the one comes back from the kernel: its call
 * is not that of the other. */
static void test_two_threads(void)
{
    Guest g;

    begin(&g, 1000);
    g.sp = 0x9000;
    on(&g, 0, 0x100, TT_CALL_CALL, 0, 2);
    g.sp = 0x8ff8;
    on(&g, 0, 0x200, TT_CALL_ENTER, 0, 2);
    on(&g, 0, KERNEL + 0x500, TT_CALL_LEAVE, 0, 2);
    g.sp = 0x1000;
    on(&g, 1, 0x100, TT_CALL_CALL, 0, 2);
    g.sp = 0xff8;
    on(&g, 1, 0x200, TT_CALL_NEXT, 0, 2);
    g.sp = 0x8ff8;
    on(&g, 0, 0x205, TT_CALL_CALL, 0, 2);
    g.sp = 0x8ff0;
    on(&g, 0, 0x300, TT_CALL_NEXT, 0, 2);
    end(&g);
    saw(&g, "200@200", 4);
    saw(&g, "200;300@300", 2);
    finish(&g);
}

/* A longjmp out of functions with large frames, 50 times, with an interrupt behind each but
 * the last; and a call on another stack, below all callers by as much. */
static void test_longjmp_far(void)
{
    Guest g;

    begin(&g, 1000);
    g.sp = 0x100000;
    run(&g, 0x100, TT_CALL_CALL);
    for (int i = 0; i < 50; i++) {
        g.sp = 0xffff8;
        run(&g, 0x200, TT_CALL_CALL);
        g.sp -= 8;
        run(&g, 0x300, TT_CALL_CALL);
        g.sp -= 0x40000;
        run(&g, 0x400, TT_CALL_CALL);
        g.sp -= 0x40000;
        run(&g, 0x500, TT_CALL_JUMP);
        if (i < 49) {
            g.sp = 0xffff8;
            run(&g, 0x205, TT_CALL_NEXT);
            run(&g, KERNEL + 0x900, TT_CALL_LEAVE);
        }
    }
    g.sp = 0xa0000;
    run(&g, 0x600, TT_CALL_CALL);
    g.sp -= 8;
    run(&g, 0x700, TT_CALL_NEXT);
    end(&g);
    saw(&g, "200@200", 2);
    saw(&g, "200;300;400;500@200", 98);
    saw(&g, "200;300;400;500@500", 100);
    saw(&g, "200;300;400;500;700@700", 2);
    finish(&g);
}

/* The same where the caller's own call is not known. */
static void test_longjmp_far_of_unknown(void)
{
    Guest g;

    begin(&g, 1000);
    for (int i = 0; i < 50; i++) {
        g.sp = 0xffff8;
        run(&g, 0x200, TT_CALL_CALL);
        g.sp -= 8;
        run(&g, 0x300, TT_CALL_CALL);
        g.sp -= 0x80000;
        run(&g, 0x400, TT_CALL_JUMP);
    }
    end(&g);
    saw(&g, "@200", 2);
    saw(&g, "300;400@200", 98);
    saw(&g, "300;400@400", 100);
    finish(&g);
}

/* System management mode interrupts a kernel in the upper half, and goes back there. */
static void test_smm(void)
{
    Guest g;

    begin(&g, 100);
    run(&g, KERNEL + 0x100, TT_CALL_CALL);
    g.sp = 0xff8;
    run(&g, KERNEL + 0x200, TT_CALL_NEXT);
    g.interrupted_pc = KERNEL + 0x205;
    g.interrupted_sp = g.sp;
    on(&g, 0, 0x38000, TT_CALL_CALL, 1, 2);
    run(&g, 0x38100, TT_CALL_RESUME);
    run(&g, KERNEL + 0x205, TT_CALL_RETURN);
    g.sp = 0x1000;
    run(&g, KERNEL + 0x105, TT_CALL_NEXT);
    end(&g);
    saw(&g, "ffffffff80000200;38000@38000", 2);
    saw(&g, "ffffffff80000200;38000;38100@38100", 2);
    saw(&g, "ffffffff80000200@ffffffff80000205", 2);
    saw(&g, "@ffffffff80000105", 2);
    finish(&g);
}

/* A guest of the guest, 50 times, ended by what its host intercepts; it does not nest. */
static void test_guest(void)
{
    Guest g;

    begin(&g, 1000);
    run(&g, 0x100, TT_CALL_CALL);
    for (int i = 0; i < 50; i++) {
        g.sp = 0xff8;
        run(&g, 0x200, TT_CALL_GUEST);
        g.sp = 0x4000;
        g.space = 2;
        run(&g, i % 2 ? KERNEL + 0x700 : 0x700, TT_CALL_CALL);
        g.sp = 0x3ff8;
        run(&g, 0x800, i % 2 ? TT_CALL_NEXT : TT_CALL_JUMP);
        g.space = 1;
        g.sp = 0xff8;
        run(&g, 0x205, TT_CALL_JUMP);
    }
    run(&g, 0x200, TT_CALL_GUEST);
    run(&g, 0x205, TT_CALL_RETURN);     /* it cannot be entered */
    g.sp = 0x1000;
    run(&g, 0x105, TT_CALL_NEXT);
    end(&g);
    saw(&g, "200@200", 102);
    saw(&g, "200;700@700", 50);
    saw(&g, "200;ffffffff80000700;800@800", 50);
    saw(&g, "200@205", 102);
    saw(&g, "@105", 2);
    finish(&g);
}

/* An interrupt at the first instruction of the handler of another. */
static void test_interrupted_twice(void)
{
    Guest g;

    begin(&g, 100);
    run(&g, 0x100, TT_CALL_CALL);
    g.sp = 0xfa0;
    g.interrupted_pc = 0x800;
    g.interrupted_sp = 0xfd0;
    g.outer_pc = 0x200;
    g.outer_sp = 0xff8;
    on(&g, 0, 0x900, TT_CALL_LEAVE, 2, 2);
    g.sp = 0xfd0;
    run(&g, 0x800, TT_CALL_LEAVE);
    g.sp = 0xff8;
    run(&g, 0x200, TT_CALL_RETURN);
    g.sp = 0x1000;
    run(&g, 0x105, TT_CALL_NEXT);
    end(&g);
    saw(&g, "200;800;900@900", 2);
    saw(&g, "200;800@800", 2);
    saw(&g, "200@200", 2);
    saw(&g, "@105", 2);
    finish(&g);
}

/* Many calls that return do not push out the one that has not. And two return from one call
 * (vfork). */
static void test_many_calls(void)
{
    Guest g;

    begin(&g, 10);
    g.sp = 0x1008;
    run(&g, 0x100, TT_CALL_CALL);
    g.sp = 0x1000;
    run(&g, 0x180, TT_CALL_CALL);
    g.sp = 0xff8;
    for (int i = 0; i < 100; i++) {
        run(&g, 0x200, TT_CALL_CALL);
        g.sp -= 8;
        run(&g, 0x300, TT_CALL_RETURN);
        g.sp += 8;
        run(&g, 0x205, TT_CALL_JUMP);
        g.sp -= 16;
    }
    g.sp = 0xff8;
    run(&g, 0x210, TT_CALL_CALL);
    for (int i = 0; i < 2; i++) {
        g.sp = 0xff0;
        run(&g, 0x400, TT_CALL_RETURN);
        g.sp = 0xff8;
        run(&g, 0x215, i ? TT_CALL_RETURN : TT_CALL_JUMP);
    }
    g.sp = 0x1000;
    run(&g, 0x185, TT_CALL_NEXT);
    end(&g);
    saw(&g, "180;200;300@300", 200);
    saw(&g, "180;200@215", 4);
    saw(&g, "180@185", 2);
    finish(&g);
}

/* A call of the next instruction, whose code does return: to itself, then to its caller. */
static void test_call_next(void)
{
    Guest g;

    begin(&g, 100);
    run(&g, 0x100, TT_CALL_CALL);
    g.sp = 0xff8;
    run(&g, 0x200, TT_CALL_CALL);
    g.sp = 0xff0;
    run(&g, 0x205, TT_CALL_RETURN);
    g.sp = 0xff8;
    run(&g, 0x205, TT_CALL_RETURN);
    g.sp = 0x1000;
    run(&g, 0x105, TT_CALL_NEXT);
    end(&g);
    saw(&g, "200@205", 4);
    saw(&g, "@105", 2);
    finish(&g);
}

/* Two vCPUs, each with its own stack. */
static void test_vcpus(void)
{
    Guest g;

    begin(&g, 100);
    on(&g, 0, 0x100, TT_CALL_CALL, 0, 2);
    on(&g, 1, 0x100, TT_CALL_CALL, 0, 2);
    g.sp = 0x1ff8;
    on(&g, 1, 0x300, TT_CALL_NEXT, 0, 2);
    g.sp = 0xff8;
    on(&g, 0, 0x200, TT_CALL_NEXT, 0, 2);
    end(&g);
    saw(&g, "@100", 4);
    saw(&g, "300@300", 2);
    saw(&g, "200@200", 2);
    finish(&g);
}

/* Endless recursion, and more functions than there is room for: it goes on. */
static void test_limits(void)
{
    Guest g;
    unsigned deepest = 2 * TT_CALLSTACK_DEPTH;

    begin(&g, 1000);
    g.sp = 1u << 20;
    for (unsigned i = 0; i <= deepest; i++, g.sp -= 8) {
        run(&g, 0x100, TT_CALL_CALL);
    }
    for (unsigned i = 0; i < deepest; i++) {
        g.sp += 8;
        run(&g, 0x100, TT_CALL_ENTER);
    }
    for (unsigned i = 0; i < 5000; i++, g.sp -= 8) {
        run(&g, 0x1000 + 16 * i, TT_CALL_CALL);
    }
    end(&g);
    g_assert_cmpuint(g_hash_table_size(g.seen), >, TT_CALLSTACK_DEPTH);
    finish(&g);
}

static void test_x86(void)
{
    static const struct {
        TtCallKind kind;
        uint32_t pops;
        const char *bytes;
    } all[] = {
        { TT_CALL_CALL, 0, "\xe8\1\2\3\4" }, { TT_CALL_CALL, 0, "\xff\xd0" },
        { TT_CALL_CALL, 0, "\x41\xff\xd3" }, { TT_CALL_CALL, 0, "\xff\x55\x10" },
        { TT_CALL_RETURN, 0, "\xc3" }, { TT_CALL_RETURN, 0, "\xf3\xc3" },
        { TT_CALL_RETURN, 0x108, "\xc2\x08\x01" }, { TT_CALL_JUMP, 0, "\xeb\x10" },
        { TT_CALL_JUMP, 0, "\x0f\x84\1\2\3\4" }, { TT_CALL_JUMP, 0, "\x75\x10" },
        { TT_CALL_JUMP, 0, "\x3e\xff\xe0" }, { TT_CALL_ENTER, 0, "\x0f\x05" },
        { TT_CALL_ENTER, 0, "\xcd\x80" }, { TT_CALL_LEAVE, 0, "\x48\xcf" },
        { TT_CALL_LEAVE, 0, "\xcf" }, { TT_CALL_LEAVE, 0, "\x48\x0f\x07" },
        { TT_CALL_RESUME, 0, "\x0f\xaa" }, { TT_CALL_GUEST, 0, "\x0f\x01\xd8" },
        { TT_CALL_NEXT, 0, "\x0f\x01\xd9" }, { TT_CALL_NEXT, 0, "\xce" },
        { TT_CALL_NEXT, 0, "\x90" }, { TT_CALL_NEXT, 0, "\x40" },
        { TT_CALL_NEXT, 0, "\xff\xc0" }, { TT_CALL_NEXT, 0, "\x0f\x1f\x40" },
        { TT_CALL_NEXT, 0, "\xf3\xa4" }, { TT_CALL_NEXT, 0, "" },
    };
    uint32_t pops;

    for (unsigned i = 0; i < G_N_ELEMENTS(all); i++) {
        g_assert_cmpint(tt_callstack_x86_kind((const uint8_t *)all[i].bytes,
                                              strlen(all[i].bytes), &pops), ==,
                        all[i].kind);
        g_assert_cmpuint(pops, ==, all[i].pops);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/callstack/calls", test_calls);
    g_test_add_func("/callstack/narrow", test_narrow);
    g_test_add_func("/callstack/narrow-stale", test_narrow_stale);
    g_test_add_func("/callstack/switch", test_switch);
    g_test_add_func("/callstack/interrupts", test_interrupts);
    g_test_add_func("/callstack/interrupted-fault", test_interrupted_fault);
    g_test_add_func("/callstack/kernel", test_kernel);
    g_test_add_func("/callstack/retpoline", test_retpoline);
    g_test_add_func("/callstack/dropped", test_dropped);
    g_test_add_func("/callstack/moved", test_moved);
    g_test_add_func("/callstack/signal", test_signal);
    g_test_add_func("/callstack/longjmp-after-call", test_longjmp_after_call);
    g_test_add_func("/callstack/two-threads", test_two_threads);
    g_test_add_func("/callstack/longjmp-far", test_longjmp_far);
    g_test_add_func("/callstack/longjmp-far-of-unknown", test_longjmp_far_of_unknown);
    g_test_add_func("/callstack/smm", test_smm);
    g_test_add_func("/callstack/guest", test_guest);
    g_test_add_func("/callstack/interrupted-twice", test_interrupted_twice);
    g_test_add_func("/callstack/many-calls", test_many_calls);
    g_test_add_func("/callstack/call-next", test_call_next);
    g_test_add_func("/callstack/vcpus", test_vcpus);
    g_test_add_func("/callstack/limits", test_limits);
    g_test_add_func("/callstack/x86", test_x86);
    return g_test_run();
}
