/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A plugin for QEMU's TCG: how many instructions began, and, with memory=on, how many
 * loads and stores were done.
 */
#include <inttypes.h>
#include <glib.h>
#include <qemu-plugin.h>

QEMU_PLUGIN_EXPORT int qemu_plugin_version = QEMU_PLUGIN_VERSION;

typedef struct Counts {
    uint64_t insns, loads, stores;
} Counts;

static struct qemu_plugin_scoreboard *board;
static qemu_plugin_u64 insns, loads, stores;
static bool counts_memory;

static void translated(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
    for (size_t i = 0; i < qemu_plugin_tb_n_insns(tb); i++) {
        struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);

        qemu_plugin_register_vcpu_insn_exec_inline_per_vcpu(
            insn, QEMU_PLUGIN_INLINE_ADD_U64, insns, 1);
        if (counts_memory) {
            qemu_plugin_register_vcpu_mem_inline_per_vcpu(
                insn, QEMU_PLUGIN_MEM_R, QEMU_PLUGIN_INLINE_ADD_U64, loads, 1);
            qemu_plugin_register_vcpu_mem_inline_per_vcpu(
                insn, QEMU_PLUGIN_MEM_W, QEMU_PLUGIN_INLINE_ADD_U64, stores, 1);
        }
    }
}

static void at_exit(qemu_plugin_id_t id, void *opaque)
{
    g_autoptr(GString) s = g_string_new("tt-merge: sum\n");

    for (int i = 0; i < qemu_plugin_num_vcpus(); i++) {
        g_string_append_printf(s, "cpu%d;instructions %" PRIu64 "\n", i,
                               qemu_plugin_u64_get(insns, i));
        if (counts_memory) {
            g_string_append_printf(s, "cpu%d;loads %" PRIu64 "\ncpu%d;stores %" PRIu64
                                   "\n", i, qemu_plugin_u64_get(loads, i), i,
                                   qemu_plugin_u64_get(stores, i));
        }
    }
    g_string_append(s, "tt-merge: end\n");
    qemu_plugin_outs(s->str);
}

QEMU_PLUGIN_EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info,
                                           int argc, char **argv)
{
    for (int i = 0; i < argc; i++) {
        g_auto(GStrv) words = g_strsplit(argv[i], "=", 2);

        if (g_strcmp0(words[0], "memory") ||
            !qemu_plugin_bool_parse(words[0], words[1], &counts_memory)) {
            g_printerr("count takes memory=on or off, not '%s'\n", argv[i]);
            return -1;
        }
    }
    board = qemu_plugin_scoreboard_new(sizeof(Counts));
    insns = qemu_plugin_scoreboard_u64_in_struct(board, Counts, insns);
    loads = qemu_plugin_scoreboard_u64_in_struct(board, Counts, loads);
    stores = qemu_plugin_scoreboard_u64_in_struct(board, Counts, stores);
    qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
    qemu_plugin_register_atexit_cb(id, at_exit, NULL);
    return 0;
}
