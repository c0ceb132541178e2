/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * "monitor tt ..." of gdb's. Such a command may move the VM for minutes, and gdb
 * must be able to end it. So it is not carried out where gdb's bytes are read but
 * by a source of its own: while it waits, bytes are still read.
 *
 *   gdb sends   qRcmd        (Ctrl-C: gdb sends nothing, and hears no more)
 *   stub sends  O progress, O progress, ... OK
 *
 * A gdb whose user has pressed Ctrl-C leaves the command without a word. It shows
 * by a progress message that is not acknowledged, or by the next packet; a gdb
 * that still listens sends nothing but acknowledgements. Both end the movement,
 * and the packet is read when the VM stands.
 */
#include "qemu/osdep.h"
#include "gdbstub-tt/tt-gdb-rcmd.h"
#include "tt/hooks-gdb.h"
#include "qemu/timer.h"
#include "gdbstub/commands.h"
#include "gdbstub/internals.h"

#define SILENT_MS 700           /* no acknowledgement for so long: gdb is gone */

static struct {
    bool busy, again;
    void (*handler)(TtGdbParams *params, void *opaque);
    char *text;
    GByteArray *kept;           /* what gdb sent meanwhile */
    bool gave_up;
    int64_t unheard_ms;         /* since then; 0: gdb has heard all */
} cmd;

bool tt_gdb_rcmd_takes(uint8_t byte)
{
    if (!cmd.busy || byte == '+' || byte == '-') {
        return false;
    }
    cmd.gave_up = true;
    if (byte != 0x03) {
        g_byte_array_append(cmd.kept, &byte, 1);
    }
    return true;
}

bool tt_gdb_gave_up(void)
{
    int64_t now = qemu_clock_get_ms(QEMU_CLOCK_REALTIME);

    if (!cmd.busy) {
        return false;
    }
    if (!gdbserver_state.last_packet->len) {
        cmd.unheard_ms = 0;
    } else if (!cmd.unheard_ms) {
        cmd.unheard_ms = now;
    }
    return cmd.gave_up ||
        (cmd.unheard_ms && now - cmd.unheard_ms > SILENT_MS);
}

static void carry_out(void)
{
    g_autoptr(GArray) params = g_array_new(false, true,
                                           sizeof(GdbCmdVariant));

    g_array_set_size(params, 1);
    gdb_get_cmd_param(params, 0)->data = cmd.text;
    cmd.again = true;
    cmd.handler(params, NULL);
    cmd.again = false;
}

static gboolean run(gpointer unused)
{
    g_autoptr(GByteArray) kept = NULL;

    carry_out();
    cmd.busy = false;
    kept = g_steal_pointer(&cmd.kept);
    for (guint i = 0; i < kept->len; i++) {
        gdb_read_byte(kept->data[i]);
    }
    return G_SOURCE_REMOVE;
}

/* In hex: "tt " */
static bool is_ours(const char *text)
{
    return g_str_has_prefix(text, "747420");
}

bool tt_gdb_defers(void (*handler)(TtGdbParams *params, void *opaque),
                   TtGdbParams *params)
{
    const char *text = gdb_get_cmd_param(params, 0)->data;

    if (cmd.again || cmd.busy || !is_ours(text)) {
        return false;
    }
    g_free(cmd.text);
    cmd.text = g_strdup(text);
    cmd.handler = handler;
    cmd.kept = g_byte_array_new();
    cmd.gave_up = false;
    cmd.unheard_ms = 0;
    cmd.busy = true;
    g_idle_add_full(G_PRIORITY_DEFAULT, run, NULL, NULL);
    return true;
}
