/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What plugins share that read registers: the handles of those that they name, and a
 * value. Included once in each plugin, after it has defined N_REGS and names[].
 */
#ifndef TT_REGISTERS_H
#define TT_REGISTERS_H

#include <string.h>
#include <glib.h>
#include <qemu-plugin.h>

static struct qemu_plugin_register *regs[N_REGS];
static GByteArray *buf;                 /* the plugin makes it */

static void vcpu_began(qemu_plugin_id_t id, unsigned int vcpu)
{
    g_autoptr(GArray) all = qemu_plugin_get_registers();

    for (guint i = 0; i < all->len; i++) {
        const qemu_plugin_reg_descriptor *r =
            &g_array_index(all, qemu_plugin_reg_descriptor, i);

        for (unsigned k = 0; k < N_REGS; k++) {
            if (!strcmp(r->name, names[k])) {
                regs[k] = r->handle;
            }
        }
    }
}

/* 0: the vCPU has no such register. */
static uint64_t reg(unsigned which)
{
    uint64_t value = 0;

    g_byte_array_set_size(buf, 0);
    if (regs[which]) {
        int n = qemu_plugin_read_register(regs[which], buf);

        memcpy(&value, buf->data, MIN(n, (int)sizeof(value)));
    }
    return GUINT64_FROM_LE(value);
}

#endif
