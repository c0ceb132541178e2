/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A plugin for QEMU's TCG: how many instructions began under each call stack, as folded
 * stacks for flame graphs, for `tt run-plugin RUN stacks`. The stacks are kept from calls and
 * returns (stack/tt-callstack.h says how, and what is approximate). A line each:
 *
 *   kernel|low;0xFUNCTION;...;@0xBLOCK COUNT
 *
 * where BLOCK is in the innermost function, or in one that it jumped to: tt makes a
 * function of it, and leaves it out if that is the innermost one.
 *
 * Memory: that of the core, and about 100 bytes for each block of code that differs in its
 * place or length.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <glib.h>
#include <qemu-plugin.h>

#include "plugins-tt/stack/tt-callstack.h"
#include "tt/plugin.h"

QEMU_PLUGIN_EXPORT int qemu_plugin_version = QEMU_PLUGIN_VERSION;

#define NODES_MAX   (1u << 20)
#define INSN_MAX    15

#define EFER_LMA    (1u << 10)
#define TABLE_MASK  0x000fffffffffe000ull   /* without the bit of page table isolation */

#define CR0_PE      1u

/* System management mode: where its code begins, in real mode, and where, from there on, the
 * CPU keeps what was. */
#define SMM_BEGIN       0x8000u
#define SMM_OLD_CS_BASE 0x7e18u
#define SMM_OLD_PC      0x7f78u

enum { RIP, RSP, SS, CR0, CR3, EFER, N_REGS };
static const char *const names[N_REGS] = { "rip", "rsp", "ss", "cr0", "cr3", "efer" };

#include "tt-registers.h"

static TtCallstack *stacks;
static GHashTable *blocks;      /* of TtCallBlock, its own key */
static GMutex lock;
static struct qemu_plugin_scoreboard *board;
static qemu_plugin_u64 insns;
static const uint64_t *interrupts;
static uint64_t interrupts_seen[TT_CALLSTACK_VCPUS_MAX], insns_seen[TT_CALLSTACK_VCPUS_MAX];

/* ---- the vCPU ---- */

static uint64_t sp_now(void *opaque)
{
    return reg(RSP);
}

static uint64_t space_now(void *opaque)
{
    return reg(CR3) & TABLE_MASK;
}

static bool read_words(uint64_t at, void *words, size_t len)
{
    if (!qemu_plugin_read_memory_vaddr(at, buf, len) || buf->len < len) {
        return false;
    }
    memcpy(words, buf->data, len);
    return true;
}

/* Words of a frame, in this order, of 8, 4 or 2 bytes. */
enum { OLD_PC, OLD_CS, OLD_FLAGS, OLD_SP, OLD_SS, FRAME_WORDS };

/* In long mode the frame has the old stack pointer always, ... */
static bool interrupted_long(uint64_t at, uint64_t *pc, uint64_t *sp)
{
    uint64_t words[FRAME_WORDS] = { 0 };
    bool has = read_words(at, words, sizeof(words));

    *pc = words[OLD_PC];
    *sp = words[OLD_SP];
    return has;
}

/* ... in protected mode only if the privilege changed, ... */
static bool interrupted_protected(uint64_t at, uint64_t *pc, uint64_t *sp)
{
    uint32_t words[FRAME_WORDS] = { 0 };

    if (!read_words(at, words, OLD_SP * sizeof(*words)) ||
        ((words[OLD_CS] & 3) && !read_words(at, words, sizeof(words)))) {
        return false;
    }
    *pc = words[OLD_PC];
    *sp = words[OLD_CS] & 3 ? words[OLD_SP] : at + OLD_SP * sizeof(*words);
    return true;
}

/* ... and in real mode never. */
static bool interrupted_real(uint64_t at, uint64_t *pc, uint64_t *sp)
{
    uint16_t words[OLD_SP] = { 0 };

    if (!read_words((reg(SS) << 4) + (uint16_t)at, words, sizeof(words))) {
        return false;
    }
    *pc = (words[OLD_CS] << 4) + words[OLD_PC];
    *sp = at + sizeof(words);
    return true;
}

/* The CPU makes no frame, and keeps its stack pointer. */
static bool interrupted_smm(uint64_t handler, uint64_t *pc)
{
    uint64_t base;

    if (!handler || !read_words(handler + SMM_OLD_PC, pc, sizeof(*pc)) ||
        !read_words(handler + SMM_OLD_CS_BASE, &base, sizeof(base))) {
        return false;
    }
    *pc += base;
    return true;
}

/* A vCPU that has been started has no stack. */
static bool interrupted(void *opaque, uint64_t handler, uint64_t *pc, uint64_t *sp)
{
    uint64_t at = *sp;

    if (!at) {
        return false;
    }
    if (reg(EFER) & EFER_LMA) {
        return interrupted_long(at, pc, sp);
    }
    if (reg(CR0) & CR0_PE) {
        return interrupted_protected(at, pc, sp);
    }
    return reg(RIP) == SMM_BEGIN ? interrupted_smm(handler, pc) :
        interrupted_real(at, pc, sp);
}

static const TtCallVcpu vcpu_ops = {
    .sp = sp_now, .space = space_now, .interrupted = interrupted,
};

/* ---- what is executed ---- */

static uint64_t begun(unsigned vcpu)
{
    uint64_t all = qemu_plugin_u64_get(insns, vcpu), n = all - insns_seen[vcpu];

    insns_seen[vcpu] = all;
    return n;
}

static void block_begins(unsigned int vcpu, void *block)
{
    uint64_t n_interrupts;

    if (vcpu >= TT_CALLSTACK_VCPUS_MAX) {
        return;
    }
    g_mutex_lock(&lock);
    n_interrupts = interrupts ? interrupts[vcpu] : 0;
    tt_callstack_block(stacks, vcpu, block, begun(vcpu),
                       n_interrupts - interrupts_seen[vcpu]);
    interrupts_seen[vcpu] = n_interrupts;
    g_mutex_unlock(&lock);
}

static guint block_hash(gconstpointer p)
{
    return g_int64_hash(&((const TtCallBlock *)p)->at);
}

static gboolean block_equal(gconstpointer p, gconstpointer q)
{
    const TtCallBlock *a = p, *b = q;

    return a->at == b->at && a->behind == b->behind && a->n == b->n && a->kind == b->kind &&
        a->pops == b->pops;
}

/* One that is translated again is the same, with the lock. */
static TtCallBlock *known(const TtCallBlock *block)
{
    TtCallBlock *b = g_hash_table_lookup(blocks, block);

    if (!b) {
        b = g_memdup2(block, sizeof(*block));
        g_hash_table_add(blocks, b);
    }
    return b;
}

static TtCallBlock *block_of(struct qemu_plugin_tb *tb)
{
    size_t n = qemu_plugin_tb_n_insns(tb);
    struct qemu_plugin_insn *last = qemu_plugin_tb_get_insn(tb, n - 1);
    uint8_t bytes[INSN_MAX];
    TtCallBlock block = {
        .at = qemu_plugin_tb_vaddr(tb),
        .behind = qemu_plugin_insn_vaddr(last) + qemu_plugin_insn_size(last), .n = n,
    }, *b;

    block.kind = tt_callstack_x86_kind(
        bytes, qemu_plugin_insn_data(last, bytes, sizeof(bytes)), &block.pops);
    g_mutex_lock(&lock);
    b = known(&block);
    g_mutex_unlock(&lock);
    return b;
}

static void translated(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
    qemu_plugin_register_vcpu_tb_exec_cb(tb, block_begins, QEMU_PLUGIN_CB_R_REGS,
                                         block_of(tb));
    for (size_t i = 0; i < qemu_plugin_tb_n_insns(tb); i++) {
        qemu_plugin_register_vcpu_insn_exec_inline_per_vcpu(
            qemu_plugin_tb_get_insn(tb, i), QEMU_PLUGIN_INLINE_ADD_U64, insns, 1);
    }
}

/* ---- the plugin ---- */

static void put(void *opaque, const uint64_t *functions, unsigned depth, uint64_t block,
                uint64_t count)
{
    g_autoptr(GString) s = g_string_new(NULL);

    g_string_append(s, (depth ? functions[0] : block) >> 63 ? "kernel" : "low");
    for (unsigned i = 0; i < depth; i++) {
        g_string_append_printf(s, ";0x%" PRIx64, functions[i]);
    }
    g_string_append_printf(s, ";@0x%" PRIx64 " %" PRIu64 "\n", block, count);
    qemu_plugin_outs(s->str);
}

static void at_exit(qemu_plugin_id_t id, void *opaque)
{
    for (int i = 0; i < MIN(qemu_plugin_num_vcpus(), TT_CALLSTACK_VCPUS_MAX); i++) {
        tt_callstack_end(stacks, i, begun(i));
    }
    qemu_plugin_outs("tt-merge: sum\n");
    tt_callstack_each(stacks, put, NULL);
    qemu_plugin_outs("tt-merge: end\n");
}

QEMU_PLUGIN_EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info,
                                           int argc, char **argv)
{
    if (argc) {
        g_printerr("this plugin takes no arguments: leave out '%s'\n", argv[0]);
        return -1;
    }
    buf = g_byte_array_new();
    blocks = g_hash_table_new(block_hash, block_equal);
    stacks = tt_callstack_new(&vcpu_ops, NULL, NODES_MAX);
    board = qemu_plugin_scoreboard_new(sizeof(uint64_t));
    insns = qemu_plugin_scoreboard_u64(board);
    interrupts = tt_interrupts_of_vcpus();
    if (interrupts) {
        memcpy(interrupts_seen, interrupts, sizeof(interrupts_seen));
    }
    qemu_plugin_register_vcpu_init_cb(id, vcpu_began);
    qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
    qemu_plugin_register_atexit_cb(id, at_exit, NULL);
    return 0;
}
