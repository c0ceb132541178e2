/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A plugin for QEMU's TCG: the system calls of 64-bit Linux programs, for `tt syscalls`
 * and `tt compare`. A line each:
 *
 *   exec POSITION TABLE ENTRY NAME             a new program begins
 *   call POSITION TABLE STACK NUMBER RESULT ARGUMENT...
 *   back POSITION TABLE STACK VALUE            of the last call from there
 *
 * TABLE is where the process's page tables are, STACK its stack pointer: both together
 * name a thread that waits. ENTRY is where the program's file has its first instruction.
 * POSITION is that of the instruction SYSCALL, SYSRET or IRET.
 * An ARGUMENT begins with how it is to be read (tt-syscalls-table.h). What a process reads
 * is not shown. A call that was begun before the plugin was there comes back without one.
 */
#include <inttypes.h>
#include <string.h>
#include <glib.h>
#include <qemu-plugin.h>

#include "tt-syscalls-table.h"
#include "tt/plugin.h"

QEMU_PLUGIN_EXPORT int qemu_plugin_version = QEMU_PLUGIN_VERSION;

#define STRING_MAX  256                 /* bytes that are shown */
#define PAGE        4096
#define PTI_BIT     4096ull             /* of CR3: the program's half of two tables */
#define ARGC_MAX    65536
#define AUXV_MAX    64
#define AT_ENTRY    9
#define AT_EXECFN   31
#define EXIT_GROUP  231

enum { RAX, RCX, RDI, RSI, RDX, R10, R8, R9, RSP, CR3, RBX, RBP, R12, R13, R14, R15, N_REGS };
static const char *const names[N_REGS] = {
    "rax", "rcx", "rdi", "rsi", "rdx", "r10", "r8", "r9", "rsp", "cr3", "rbx", "rbp", "r12",
    "r13", "r14", "r15",
};

#include "tt-registers.h"

typedef struct Thread {
    uint64_t table, stack;
} Thread;

/* A call that is under way. What it points to may not be in memory yet: then it is shown
 * when the kernel has read it. */
typedef struct Call {
    uint64_t position, number, args[7];
    bool is_kept, is_shown;
} Call;

static bool is_over;                    /* the memory cannot be read: no vCPU, or no process */
static GHashTable *threads;             /* of Thread: Call */
static unsigned n_hidden;               /* of them are not shown yet */

/* ---- what a vCPU has ---- */

static uint64_t table(void)
{
    return reg(CR3) & ~(uint64_t)(PAGE - 1) & ~PTI_BIT;
}

/* False: not all of it can be read. In @buf. */
static bool load(uint64_t at, size_t len)
{
    g_byte_array_set_size(buf, 0);
    return len && !is_over && qemu_plugin_read_memory_vaddr(at, buf, len) && buf->len >= len;
}

static bool load_word(uint64_t at, uint64_t *word)
{
    bool ok = load(at, sizeof(*word));

    if (ok) {
        memcpy(word, buf->data, sizeof(*word));
        *word = GUINT64_FROM_LE(*word);
    }
    return ok;
}

/* Without spaces and what is not ASCII. */
static void put_bytes(GString *s, const uint8_t *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (g_ascii_isgraph(bytes[i]) && bytes[i] != '\\' && bytes[i] != '"') {
            g_string_append_c(s, bytes[i]);
        } else {
            g_string_append_printf(s, "\\%03o", bytes[i]);
        }
    }
}

/* Page by page, as the next one may not be there. NULL: not even the first byte. */
static GString *string_at(uint64_t at)
{
    GString *s = g_string_new(NULL);

    while (s->len < STRING_MAX) {
        size_t n = MIN(STRING_MAX - s->len, PAGE - at % PAGE);
        const uint8_t *end;

        if (!load(at, n)) {
            break;
        }
        end = memchr(buf->data, 0, n);
        g_string_append_len(s, (char *)buf->data, end ? end - buf->data : n);
        if (end) {
            return s;
        }
        at += n;
    }
    if (!s->len) {
        g_string_free(s, true);
        return NULL;
    }
    return g_string_append(s, "...");
}

/* ---- a call ---- */

/* False: it is not in memory. */
static bool put_argument(GString *line, char type, uint64_t value, uint64_t next)
{
    g_autoptr(GString) s = NULL;

    switch (type) {
    case 's':
        s = string_at(value);
        g_string_append(line, s ? " s\"" : " s?");
        if (s) {
            put_bytes(line, (uint8_t *)s->str, s->len);
            g_string_append_c(line, '"');
        }
        return s;
    case 'b':
        if (!load(value, MIN(next, STRING_MAX))) {
            g_string_append(line, next ? " b?" : " b\"\"");
            return !next;
        }
        g_string_append(line, " b\"");
        put_bytes(line, buf->data, buf->len);
        g_string_append(line, next > STRING_MAX ? "\"..." : "\"");
        return true;
    default:
        g_string_append_printf(line, " %c%" PRIx64, type, value);
        return true;
    }
}

/* Not, unless @anyway, while something is not in memory. Once. */
static void show(const Thread *t, Call *call, bool anyway)
{
    const TtSyscall *c = tt_syscall(call->number);
    g_autoptr(GString) line = g_string_new(NULL);
    bool is_whole = true;

    g_string_printf(line, "call %" PRIu64 " %" PRIx64 " %" PRIx64 " %" PRIu64 " %c",
                    call->position, t->table, t->stack, call->number, c->result);
    for (size_t i = 0; c->args[i]; i++) {
        is_whole &= put_argument(line, c->args[i], call->args[i], call->args[i + 1]);
    }
    if (is_whole || anyway) {
        g_string_append_c(line, '\n');
        qemu_plugin_outs(line->str);
        n_hidden -= call->is_kept;
        call->is_shown = true;
    }
}

/* What it points to is somebody else's by now. */
static void show_blindly(const Thread *t, Call *call)
{
    bool was_over = is_over;

    if (!call->is_shown) {
        is_over = true;
        show(t, call, true);
        is_over = was_over;
    }
}

/* Of an instruction that ends its block, as all of these do. 0: nobody knows it. */
static uint64_t position(void)
{
    uint64_t behind = tt_position_behind_block();

    return behind ? behind - 1 : 0;
}

/* A process has ended with all its threads, or another one has got its tables. */
static gboolean is_of_table(gpointer key, gpointer value, gpointer table)
{
    bool is_its = ((Thread *)key)->table == *(uint64_t *)table;

    if (is_its) {
        show_blindly(key, value);
    }
    return is_its;
}

static void forget_table(uint64_t table)
{
    g_hash_table_foreach_remove(threads, is_of_table, &table);
}

static void keep(const Thread *t, Call *call)
{
    g_hash_table_insert(threads, g_memdup2(t, sizeof(*t)), call);
    call->is_kept = true;
    n_hidden += !call->is_shown;
}

/* The kernel has got a page that it wanted: perhaps one of a call of this process. */
static void show_hidden(void)
{
    uint64_t here = table();
    GHashTableIter all;
    gpointer t, call;

    g_hash_table_iter_init(&all, threads);
    while (g_hash_table_iter_next(&all, &t, &call)) {
        if (((Thread *)t)->table == here && !((Call *)call)->is_shown) {
            show(t, call, false);
        }
    }
}

static void called(unsigned int vcpu, void *opaque)
{
    static const unsigned order[] = { RDI, RSI, RDX, R10, R8, R9 };
    Thread t = { table(), reg(RSP) };
    Call *call = g_new0(Call, 1), *before = g_hash_table_lookup(threads, &t);

    call->position = position();
    call->number = reg(RAX);
    for (size_t i = 0; i < G_N_ELEMENTS(order); i++) {
        call->args[i] = reg(order[i]);
    }
    if (before) {                       /* of a process that was killed */
        show_blindly(&t, before);
    }
    show(&t, call, false);
    if (call->number == EXIT_GROUP) {
        forget_table(t.table);
        g_free(call);
    } else {
        keep(&t, call);
    }
}

/* ---- back to the program ---- */

/* All registers are 0 where a program begins; at its stack are its arguments, its
 * environment, and then what the kernel tells it. NULL: none begins here. */
static GString *program(uint64_t stack, uint64_t *entry)
{
    static const unsigned zero[] = { RAX, RDI, RSI, RDX, RBX, RBP, R8, R9, R10, R12, R13,
                                     R14, R15 };
    uint64_t argc, word, at = stack + 8, key;

    for (size_t i = 0; i < G_N_ELEMENTS(zero); i++) {
        if (reg(zero[i])) {
            return NULL;
        }
    }
    if (!load_word(stack, &argc) || argc > ARGC_MAX) {
        return NULL;
    }
    at += 8 * (argc + 1);
    for (unsigned i = 0; i < ARGC_MAX; i++, at += 8) {
        if (!load_word(at, &word)) {
            return NULL;
        }
        if (!word) {
            break;
        }
    }
    at += 8;
    for (unsigned i = 0; i < AUXV_MAX && load_word(at, &key) && key; i++, at += 16) {
        if (key == AT_ENTRY && load_word(at + 8, &word)) {
            *entry = word;
        } else if (key == AT_EXECFN && load_word(at + 8, &word)) {
            return string_at(word);
        }
    }
    return NULL;
}

/* @pc is behind a SYSCALL: this is where a call ends, and no interrupt or fault. */
static bool is_behind_call(uint64_t pc)
{
    static const uint8_t syscall[] = { 0x0f, 0x05 };

    return load(pc - sizeof(syscall), sizeof(syscall)) &&
        !memcmp(buf->data, syscall, sizeof(syscall));
}

/* clone, vfork, clone3: the child may have its parent's tables and stack. */
static bool is_vfork(uint64_t number)
{
    return number == 56 || number == 58 || number == 435;
}

static void began(uint64_t stack)
{
    uint64_t entry = 0;
    g_autoptr(GString) name = program(stack, &entry);
    g_autoptr(GString) line = g_string_new(NULL);

    if (name && name->len) {
        forget_table(table());
        g_string_printf(line, "exec %" PRIu64 " %" PRIx64 " %" PRIx64 " ", position(),
                        table(), entry);
        put_bytes(line, (uint8_t *)name->str, name->len);
        g_string_append_c(line, '\n');
        qemu_plugin_outs(line->str);
    }
}

static void returned(uint64_t pc, uint64_t stack)
{
    Thread t = { table(), stack };
    Call *call = g_hash_table_lookup(threads, &t);
    g_autofree char *line = NULL;

    if (!is_behind_call(pc)) {
        began(stack);
        return;
    }
    if (call && !call->is_shown) {
        show(&t, call, true);
    }
    if (call && is_vfork(call->number) && !reg(RAX)) {
        call = NULL;                    /* the child is back: its parent still waits */
    }
    line = g_strdup_printf("back %" PRIu64 " %" PRIx64 " %" PRIx64 " %" PRIx64 "\n",
                           position(), t.table, t.stack, reg(RAX));
    qemu_plugin_outs(line);
    if (call) {
        g_hash_table_remove(threads, &t);
    }
}

static void sysret(unsigned int vcpu, void *opaque)
{
    returned(reg(RCX), reg(RSP));
}

static void iret(unsigned int vcpu, void *opaque)
{
    uint64_t frame = reg(RSP), pc, cs, stack;

    if (!load_word(frame, &pc) || !load_word(frame + 8, &cs)) {
        return;
    }
    if ((cs & 3) != 3) {
        if (n_hidden) {
            show_hidden();
        }
    } else if (load_word(frame + 24, &stack)) {
        returned(pc, stack);
    }
}

/* ---- the plugin ---- */

static void translated(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
    static const struct {
        uint8_t bytes[3], len;
        qemu_plugin_vcpu_udata_cb_t seen;
    } all[] = {
        { { 0x0f, 0x05 }, 2, called },
        { { 0x48, 0x0f, 0x07 }, 3, sysret },
        { { 0x48, 0xcf }, 2, iret },
    };

    for (size_t i = 0; i < qemu_plugin_tb_n_insns(tb); i++) {
        struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
        uint8_t bytes[3];

        for (size_t k = 0; k < G_N_ELEMENTS(all); k++) {
            if (qemu_plugin_insn_size(insn) == all[k].len &&
                qemu_plugin_insn_data(insn, bytes, all[k].len) == all[k].len &&
                !memcmp(bytes, all[k].bytes, all[k].len)) {
                qemu_plugin_register_vcpu_insn_exec_cb(insn, all[k].seen,
                                                       QEMU_PLUGIN_CB_R_REGS, NULL);
            }
        }
    }
}

static guint thread_hash(gconstpointer p)
{
    const Thread *t = p;

    return (t->table ^ t->stack) * 0x9e3779b97f4a7c15ull >> 32;
}

static gboolean thread_equal(gconstpointer p, gconstpointer q)
{
    return !memcmp(p, q, sizeof(Thread));
}

static void at_exit(qemu_plugin_id_t id, void *opaque)
{
    GHashTableIter all;
    gpointer t, call;

    is_over = true;
    g_hash_table_iter_init(&all, threads);
    while (g_hash_table_iter_next(&all, &t, &call)) {
        show_blindly(t, call);
    }
    qemu_plugin_outs("tt-merge: end\n");
}

QEMU_PLUGIN_EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info,
                                           int argc, char **argv)
{
    if (argc) {
        g_printerr("syscalls takes no arguments\n");
        return -1;
    }
    qemu_plugin_outs("tt-merge: list\n");
    buf = g_byte_array_new();
    threads = g_hash_table_new_full(thread_hash, thread_equal, g_free, g_free);
    qemu_plugin_register_vcpu_init_cb(id, vcpu_began);
    qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
    qemu_plugin_register_atexit_cb(id, at_exit, NULL);
    return 0;
}
