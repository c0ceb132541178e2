/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A plugin that writes down all that the vCPUs do: what stands in the registers before
 * each instruction, and each store. out=FILE; two kinds of entries, of 8-byte numbers:
 *
 *   vCPU << 32, pc, 16 general registers by number
 *   1, physical address, bytes, virtual address
 *
 * What an instruction writes that only loads a segment is not its own: the CPU marks the
 * descriptor as used, mostly again. These stores are left out.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <glib.h>
#include <qemu-plugin.h>

QEMU_PLUGIN_EXPORT int qemu_plugin_version = QEMU_PLUGIN_VERSION;

static const char *const names[16] = {
    "rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi",
    "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15",
};
static struct qemu_plugin_register *regs[16];    /* the same of each vCPU */
static FILE *out;

static void executed(unsigned int cpu, void *pc)
{
    uint64_t entry[18] = { (uint64_t)cpu << 32, (uintptr_t)pc };
    g_autoptr(GByteArray) value = g_byte_array_new();

    for (int i = 0; i < 16; i++) {
        g_byte_array_set_size(value, 0);
        if (qemu_plugin_read_register(regs[i], value) == 8) {
            memcpy(&entry[2 + i], value->data, 8);
        }
    }
    fwrite(entry, 1, sizeof(entry), out);
}

static void stored(unsigned int cpu, qemu_plugin_meminfo_t info, uint64_t addr, void *p)
{
    struct qemu_plugin_hwaddr *hw = qemu_plugin_get_hwaddr(info, addr);
    uint64_t entry[4] = {
        1, qemu_plugin_hwaddr_phys_addr(hw),
        UINT64_C(1) << qemu_plugin_mem_size_shift(info), addr,
    };

    if (!qemu_plugin_hwaddr_is_io(hw)) {
        fwrite(entry, 1, sizeof(entry), out);
    }
}

/* MOV and POP to a segment register, LDS and its kin (these guests have no AVX), LTR. */
static bool loads_segment(const uint8_t *code, size_t len)
{
    static const char prefixes[] = "\x26\x2e\x36\x3e\x64\x65\x66\x67\xf0\xf2\xf3";
    static const char one[] = "\x07\x17\x1f\x8e\xc4\xc5", two[] = "\xa1\xa9\xb2\xb4\xb5";

    while (len > 1 && (strchr(prefixes, *code) || *code >> 4 == 4)) {
        code++;                         /* 4X: REX; elsewhere an instruction of one byte */
        len--;
    }
    return len && *code && (*code != 0x0f ? strchr(one, *code) != NULL :
                            len > 1 && code[1] ? strchr(two, code[1]) != NULL :
                            len > 2 && (code[2] >> 3 & 7) == 3);
}

static void translated(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
    for (size_t i = 0; i < qemu_plugin_tb_n_insns(tb); i++) {
        struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
        uint8_t code[15];
        size_t len = qemu_plugin_insn_data(insn, code, sizeof(code));

        qemu_plugin_register_vcpu_insn_exec_cb(
            insn, executed, QEMU_PLUGIN_CB_R_REGS,
            (void *)(uintptr_t)qemu_plugin_insn_vaddr(insn));
        if (!loads_segment(code, MIN(len, qemu_plugin_insn_size(insn)))) {
            qemu_plugin_register_vcpu_mem_cb(insn, stored, QEMU_PLUGIN_CB_NO_REGS,
                                             QEMU_PLUGIN_MEM_W, NULL);
        }
    }
}

static void vcpu_begins(qemu_plugin_id_t id, unsigned int cpu)
{
    g_autoptr(GArray) all = qemu_plugin_get_registers();

    for (guint i = 0; i < all->len; i++) {
        qemu_plugin_reg_descriptor *d = &g_array_index(all, qemu_plugin_reg_descriptor, i);

        for (int k = 0; k < 16; k++) {
            if (!strcmp(d->name, names[k])) {
                regs[k] = d->handle;
            }
        }
    }
}

static void at_exit(qemu_plugin_id_t id, void *opaque)
{
    fclose(out);
}

QEMU_PLUGIN_EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info,
                                           int argc, char **argv)
{
    if (argc != 1 || strncmp(argv[0], "out=", 4) || !(out = fopen(argv[0] + 4, "w"))) {
        return -1;
    }
    qemu_plugin_register_vcpu_init_cb(id, vcpu_begins);
    qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
    qemu_plugin_register_atexit_cb(id, at_exit, NULL);
    return 0;
}
