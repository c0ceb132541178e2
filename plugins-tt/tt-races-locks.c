/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Functions that take locks, and that give them back, by their addresses.
 *
 * What gives one back is seen at its first instruction: all before it is done under the
 * lock. What takes one has it when it returns: with the stack pointer above the return
 * address that was there when it began. It may sleep until then, and return on another
 * vCPU. Some never return, so only the last ones are kept.
 */
#include "tt-races.h"

#include <stdlib.h>
#include <string.h>

#define WAITING_MAX 1024

typedef struct Function {
    uint64_t begin, end;        /* equal: its insides are looked at */
    bool gives;
    bool is_known;              /* Linux's: its argument is in RDI */
} Function;

/* One that has begun to take a lock. */
typedef struct Waiting {
    uint64_t stack, lock;
    uint64_t back;              /* where it returns to; the lower half in 32-bit code */
} Waiting;

static GArray *functions;       /* of Function */
static GQueue waiting = G_QUEUE_INIT;
static char *argument;          /* a register, or one of the next two */
static const char on_stack[] = "stack", no_argument[] = "none";
static struct qemu_plugin_scoreboard *board;
static qemu_plugin_u64 n_waiting;       /* the same for each vCPU */
static GHashTable *registers;   /* name -> struct qemu_plugin_register * */
static GByteArray *bytes;

/* ---- options ---- */

/* ADDRESS, or BEGIN-END. */
static bool take_function(const char *text, bool gives, bool is_known)
{
    Function f = { .gives = gives, .is_known = is_known };
    char *end;

    f.begin = f.end = g_ascii_strtoull(text, &end, 0);
    if (end == text || (*end && *end != '-')) {
        return false;
    }
    if (*end) {
        text = end + 1;
        f.end = g_ascii_strtoull(text, &end, 0);
    }
    if (end == text || *end || f.end < f.begin) {
        return false;
    }
    functions = functions ? functions : g_array_new(false, false, sizeof(Function));
    for (guint i = 0; i < functions->len; i++) {
        Function *old = &g_array_index(functions, Function, i);

        if (old->begin == f.begin && old->gives == gives) {     /* what a user says wins */
            return true;
        }
    }
    g_array_append_val(functions, f);
    return true;
}

static bool is_argument(const char *text)
{
    static const char *const names[] = {
        "rax", "rbx", "rcx", "rdx", "rsi", "rdi", "rbp", "r8", "r9", "r10", "r11", "r12",
        "r13", "r14", "r15", on_stack, no_argument, NULL,
    };

    return g_strv_contains(names, text);
}

bool races_locks_option(const char *name, const char *value)
{
    if (!g_strcmp0(name, "argument") && is_argument(value)) {
        g_free(argument);
        argument = g_strdup(value);
        return true;
    }
    return (!g_strcmp0(name, "lock") && take_function(value, false, false)) ||
        (!g_strcmp0(name, "unlock") && take_function(value, true, false)) ||
        (!g_strcmp0(name, "linux-lock") && take_function(value, false, true)) ||
        (!g_strcmp0(name, "linux-unlock") && take_function(value, true, true));
}

/* ---- what a vCPU has ---- */

void races_locks_begin(void)
{
    g_autoptr(GArray) all = qemu_plugin_get_registers();

    if (!registers) {
        registers = g_hash_table_new(g_str_hash, g_str_equal);
        bytes = g_byte_array_new();
        board = qemu_plugin_scoreboard_new(sizeof(uint64_t));
        n_waiting = qemu_plugin_scoreboard_u64(board);
    }
    for (guint i = 0; i < all->len; i++) {
        const qemu_plugin_reg_descriptor *r =
            &g_array_index(all, qemu_plugin_reg_descriptor, i);

        g_hash_table_insert(registers, (char *)r->name, r->handle);
    }
}

uint64_t races_register(const char *name)
{
    struct qemu_plugin_register *r = g_hash_table_lookup(registers, name);
    uint64_t value = 0;

    g_byte_array_set_size(bytes, 0);
    if (r) {
        int n = qemu_plugin_read_register(r, bytes);

        memcpy(&value, bytes->data, MIN(n, (int)sizeof(value)));
    }
    return GUINT64_FROM_LE(value);
}

/* 0: it cannot be read. */
static uint64_t load(uint64_t at, size_t size)
{
    uint64_t value = 0;

    g_byte_array_set_size(bytes, 0);
    if (qemu_plugin_read_memory_vaddr(at, bytes, size) && bytes->len >= size) {
        memcpy(&value, bytes->data, size);
    }
    return GUINT64_FROM_LE(value);
}

/* The lock, at the first instruction of a function. */
static uint64_t lock_of(const Function *f, uint64_t stack)
{
    if (!argument || f->is_known) {
        return races_register("rdi");
    }
    if (!strcmp(argument, no_argument)) {
        return 0;
    }
    return !strcmp(argument, on_stack) ? load(stack + 4, 4) : races_register(argument);
}

/* ---- calls ---- */

static void count_waiting(void)
{
    for (int i = 0; i < qemu_plugin_num_vcpus(); i++) {
        qemu_plugin_u64_set(n_waiting, i, waiting.length);
    }
}

static void forget_call(const Waiting *like)
{
    for (GList *l = waiting.head; l; l = l->next) {
        const Waiting *w = l->data;

        if (w->stack == like->stack && w->back == like->back) {
            g_free(l->data);
            g_queue_delete_link(&waiting, l);
            return;
        }
    }
}

/* @number of the function. */
static void takes(unsigned int vcpu, void *number)
{
    const Function *f = &g_array_index(functions, Function, GPOINTER_TO_UINT(number));
    Waiting *w = g_new(Waiting, 1);

    w->stack = races_register("rsp");
    w->back = load(w->stack, 8);
    if (!w->back) {                     /* 32-bit code, at the end of what is mapped */
        w->back = load(w->stack, 4);
    }
    w->lock = lock_of(f, w->stack);
    forget_call(w);                     /* its first instruction, begun again */
    if (waiting.length == WAITING_MAX) {
        g_free(g_queue_pop_tail(&waiting));
    }
    g_queue_push_head(&waiting, w);
    count_waiting();
}

static void gives(unsigned int vcpu, void *number)
{
    const Function *f = &g_array_index(functions, Function, GPOINTER_TO_UINT(number));

    races_take_interrupts(vcpu);
    tt_race_release(races, vcpu, lock_of(f, races_register("rsp")));
}

/* A block begins, at @addr: does one that takes a lock return to it? */
static void returns(unsigned int vcpu, void *addr)
{
    uint64_t here = (uintptr_t)addr, stack = 0;

    for (GList *l = waiting.head; l; l = l->next) {
        Waiting *w = l->data;

        if (w->back != here && (uint32_t)w->back != here) {
            continue;
        }
        stack = stack ? stack : races_register("rsp");
        if ((w->back == here && stack == w->stack + 8) ||
            ((uint32_t)w->back == here && stack == w->stack + 4)) {
            tt_race_acquire(races, vcpu, w->lock);
            g_free(w);
            g_queue_delete_link(&waiting, l);
            count_waiting();
            return;
        }
    }
}

/* ---- what is translated ---- */

void races_locks_block(struct qemu_plugin_tb *tb)
{
    if (functions) {
        qemu_plugin_register_vcpu_tb_exec_cond_cb(
            tb, returns, QEMU_PLUGIN_CB_R_REGS, QEMU_PLUGIN_COND_NE, n_waiting, 0,
            (void *)(uintptr_t)qemu_plugin_tb_vaddr(tb));
    }
}

bool races_locks_instruction(struct qemu_plugin_insn *insn, uint64_t addr)
{
    bool is_inside = false;

    for (guint i = 0; functions && i < functions->len; i++) {
        const Function *f = &g_array_index(functions, Function, i);

        if (addr == f->begin) {
            qemu_plugin_register_vcpu_insn_exec_cb(insn, f->gives ? gives : takes,
                                                   QEMU_PLUGIN_CB_R_REGS,
                                                   GUINT_TO_POINTER(i));
        }
        is_inside |= addr >= f->begin && addr < f->end;
    }
    return is_inside;
}
