/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A plugin for QEMU's TCG: the branches that one program took in its own code, for `tt
 * compare --by branches`. A line each:
 *
 *   jump POSITION FROM TO
 *
 * POSITION is that of the branch. What a program calls outside of its own code is not
 * shown: a jump out of it ends where the program goes on. So does one that the kernel
 * interrupts. One that leads to itself is not shown either.
 *
 * Arguments: table=ADDRESS, physical, of the page tables; low=ADDRESS, high=ADDRESS of the
 * code, all in hexadecimal; max=N lines at most, then a line "more".
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <glib.h>
#include <qemu-plugin.h>

#include "tt/plugin.h"

QEMU_PLUGIN_EXPORT int qemu_plugin_version = QEMU_PLUGIN_VERSION;

#define TABLE_MASK  0x000fffffffffe000ull   /* without the bit of page table isolation */
#define INSN_MAX    15
#define THREADS_MAX 65536
#define LINES_SIZE  65536

enum { CR3, FS_BASE, N_REGS };
static const char *const names[N_REGS] = { "cr3", "fs_base" };

#include "tt-registers.h"

/* An instruction that may branch. */
typedef struct Branch {
    uint64_t at, behind;
} Branch;

/* A thread's last branch, until it is known where that led to. */
typedef struct Thread {
    uint64_t fs_base;           /* its name: what FS points to is a thread's own */
    uint64_t position;
    const Branch *branch;       /* NULL: none waits */
} Thread;

static GMutex lock;
static GHashTable *branches;    /* of Branch */
static GHashTable *threads;     /* of Thread */
static GString *lines;
static uint64_t table, low, high, max, n_lines;

/* ---- who is executed ---- */

/* NULL: another process is executed. */
static Thread *thread_now(void)
{
    uint64_t fs_base;
    Thread *t;

    if ((reg(CR3) & TABLE_MASK) != table) {
        return NULL;
    }
    fs_base = reg(FS_BASE);
    t = g_hash_table_lookup(threads, &fs_base);
    if (!t && g_hash_table_size(threads) == THREADS_MAX) {
        return NULL;
    }
    if (!t) {
        t = g_new0(Thread, 1);
        t->fs_base = fs_base;
        g_hash_table_insert(threads, &t->fs_base, t);
    }
    return t;
}

/* ---- branches ---- */

static void flush(void)
{
    qemu_plugin_outs(lines->str);
    g_string_truncate(lines, 0);
}

static void put(const Thread *t, uint64_t to)
{
    if (n_lines < max) {
        g_string_append_printf(lines, "jump %" PRIu64 " %" PRIx64 " %" PRIx64 "\n",
                               t->position, t->branch->at, to);
    } else if (n_lines == max) {
        g_string_append(lines, "more\n");
    }
    n_lines++;
    if (lines->len > LINES_SIZE) {
        flush();
    }
}

/* A block of the program's code begins: this is where its last branch led to. */
static void block_begins(unsigned int vcpu, void *opaque)
{
    uint64_t pc = (uintptr_t)opaque;
    Thread *t;

    if (n_lines > max) {
        return;
    }
    g_mutex_lock(&lock);
    t = thread_now();
    if (t && t->branch) {
        /* To itself: it faulted, and is executed again. */
        if (pc != t->branch->behind && pc != t->branch->at) {
            put(t, pc);
        }
        t->branch = NULL;
    }
    g_mutex_unlock(&lock);
}

/* It ends its block, so its position is one less than that behind the block. */
static void branch_begins(unsigned int vcpu, void *opaque)
{
    Thread *t;

    if (n_lines > max) {
        return;
    }
    g_mutex_lock(&lock);
    t = thread_now();
    if (t) {
        t->branch = opaque;
        t->position = tt_position_behind_block() - 1;
    }
    g_mutex_unlock(&lock);
}

/* ---- translation ---- */

/* A byte that may stand in front of an opcode. */
static bool is_prefix(uint8_t b)
{
    return b == 0x66 || b == 0x67 || b == 0xf0 || b == 0xf2 || b == 0xf3 ||
        (b & 0xe7) == 0x26 || (b & 0xfc) == 0x64 || (b & 0xf0) == 0x40;
}

/* Of a 64-bit program: jumps, calls and returns, not what enters the kernel. */
static bool is_branch(const struct qemu_plugin_insn *insn)
{
    uint8_t bytes[INSN_MAX + 2] = { 0 }, *b = bytes;
    size_t n = qemu_plugin_insn_data(insn, bytes, INSN_MAX);

    while (b < bytes + n && is_prefix(*b)) {
        b++;
    }
    if (*b == 0xff) {
        unsigned what = b[1] >> 3 & 7;

        return what >= 2 && what <= 5;
    }
    return (*b & 0xf0) == 0x70 || (*b & 0xfc) == 0xe0 || (*b >= 0xe8 && *b <= 0xeb &&
           *b != 0xea) || *b == 0xc2 || *b == 0xc3 ||
        (*b == 0x0f && (b[1] & 0xf0) == 0x80);
}

static Branch *branch_of(uint64_t at, size_t len)
{
    Branch *known = g_hash_table_lookup(branches, &at);

    if (!known || known->behind != at + len) {      /* its code may have changed */
        known = g_new(Branch, 1);
        *known = (Branch) { at, at + len };
        g_hash_table_replace(branches, &known->at, known);
    }
    return known;
}

static void translated(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
    uint64_t pc = qemu_plugin_tb_vaddr(tb);

    if (pc >= high || pc + qemu_plugin_tb_n_insns(tb) * INSN_MAX < low) {
        return;
    }
    qemu_plugin_register_vcpu_tb_exec_cb(tb, block_begins, QEMU_PLUGIN_CB_R_REGS,
                                         (void *)(uintptr_t)pc);
    for (size_t i = 0; i < qemu_plugin_tb_n_insns(tb); i++) {
        struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);

        if (is_branch(insn)) {
            g_mutex_lock(&lock);
            qemu_plugin_register_vcpu_insn_exec_cb(
                insn, branch_begins, QEMU_PLUGIN_CB_R_REGS,
                branch_of(qemu_plugin_insn_vaddr(insn), qemu_plugin_insn_size(insn)));
            g_mutex_unlock(&lock);
        }
    }
}

/* ---- the plugin ---- */

static void at_exit(qemu_plugin_id_t id, void *opaque)
{
    flush();
    qemu_plugin_outs("tt-merge: end\n");
}

static bool take(const char *arg)
{
    static const struct {
        const char *name;
        uint64_t *value;
        int base;
    } all[] = {
        { "table=", &table, 16 }, { "low=", &low, 16 }, { "high=", &high, 16 },
        { "max=", &max, 10 },
    };

    for (size_t i = 0; i < G_N_ELEMENTS(all); i++) {
        size_t len = strlen(all[i].name);
        char *end;

        if (!strncmp(arg, all[i].name, len)) {
            *all[i].value = g_ascii_strtoull(arg + len, &end, all[i].base);
            return end != arg + len && !*end;
        }
    }
    return false;
}

QEMU_PLUGIN_EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info,
                                           int argc, char **argv)
{
    max = UINT64_MAX - 1;
    for (int i = 0; i < argc; i++) {
        if (!take(argv[i])) {
            g_printerr("branches takes table=, low=, high= and max=, not '%s'\n", argv[i]);
            return -1;
        }
    }
    if (low >= high || !table) {
        g_printerr("branches needs table=ADDRESS,low=ADDRESS,high=ADDRESS, which tt compare "
                   "--by branches gives it\n");
        return -1;
    }
    table &= TABLE_MASK;
    qemu_plugin_outs("tt-merge: list\n");
    buf = g_byte_array_new();
    lines = g_string_new(NULL);
    branches = g_hash_table_new(g_int64_hash, g_int64_equal);
    threads = g_hash_table_new(g_int64_hash, g_int64_equal);
    qemu_plugin_register_vcpu_init_cb(id, vcpu_began);
    qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
    qemu_plugin_register_atexit_cb(id, at_exit, NULL);
    return 0;
}
