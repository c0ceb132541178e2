/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Undo and redo as keys: Ctrl-a u and Ctrl-a r, on a terminal that the guest shares with
 * a monitor (-nographic, -serial mon:stdio). What is typed after them goes to the guest
 * when they are done. Main thread, BQL held.
 *
 * QEMU's class of multiplexers gets another function that sets their read handlers: it
 * puts ours before QEMU's own.
 */
#include "qemu/osdep.h"
#include "monitor-cmds/tt-task.h"
#include "monitor-cmds/tt-wait.h"
#include "monitor-cmds/tt-mux-keys.h"
#include "tt/hooks.h"
#include "chardev/char.h"
#include "chardev/chardev-internal.h"
#include "qapi/error.h"
#include "qemu/coroutine.h"

static struct {
    int64_t n_inputs;           /* asked for and not begun: back (< 0), or forward */
    bool is_at_work;
    Chardev *chr;               /* on which the first of them was asked for */
    int focus;                  /* of it, and how far it was typed before the last key */
    unsigned typed;
} mux;

/* As much as there is room for: to wait here would keep the vCPU, which may be about to
 * write to the same terminal, from going on. */
static void G_GNUC_PRINTF(2, 3) say(Chardev *chr, const char *fmt, ...)
{
    g_autofree char *text = NULL;
    va_list ap;

    va_start(ap, fmt);
    text = g_strdup_vprintf(fmt, ap);
    va_end(ap);
    qemu_chr_write(chr, (const uint8_t *)text, strlen(text), false);
}

/* What was typed before the key, and not read, is undone with what was. */
static void drop_typed(MuxChardev *d, int focus, unsigned typed)
{
    if ((int)(typed - d->cons[focus]) > 0) {
        d->cons[focus] = typed;
    }
}

static void carry_out(Chardev *chr)
{
    TtTask t = { .kind = TT_TASK_UNDO, .n_inputs = mux.n_inputs };
    unsigned typed = mux.typed;
    int focus = mux.focus;
    uint64_t undos, redos;

    mux.n_inputs = 0;
    tt_undo_counts(&undos, &redos);
    if (t.n_inputs < 0 && undos) {      /* as far as there are any */
        t.n_inputs = MAX(t.n_inputs, -(int64_t)MIN(undos, INT64_MAX));
    } else if (t.n_inputs > 0 && redos) {
        t.n_inputs = MIN(t.n_inputs, (int64_t)MIN(redos, INT64_MAX));
    }
    tt_wait(tt_task_step, &t);
    if (t.err) {
        say(chr, "\r\ntt: %s\r\n", error_get_pretty(t.err));
    } else {
        drop_typed(MUX_CHARDEV(chr), focus, typed);
        tt_undo_counts(&undos, &redos);
        say(chr, "\r\ntt: %" PRIu64 " more can be undone, %" PRIu64 " redone\r\n", undos,
            redos);
    }
    tt_task_clear(&t);
}

static void coroutine_fn work(void *opaque)
{
    Chardev *chr = opaque;

    while (mux.n_inputs) {
        carry_out(chr);
    }
    mux.is_at_work = false;
    tt_undo_hold_terminals(false);
    object_unref(OBJECT(chr));
}

/* The key after the escape key. False: it is QEMU's. */
static bool key(Chardev *chr, int ch)
{
    const MuxChardev *d = MUX_CHARDEV(chr);
    g_autofree char *escape = term_escape_char > 0 && term_escape_char < 26 ?
        g_strdup_printf("C-%c", term_escape_char - 1 + 'a') : g_strdup("Escape-Char");
    if (ch == '?' || ch == 'h') {
        say(chr, "\r\n%s u    takes back your last input (tt undo)\r\n"
            "%s r    does it again (tt redo)", escape, escape);
        return false;           /* QEMU's own help comes after it */
    }
    if (ch != 'u' && ch != 'r') {
        return false;
    }
    mux.n_inputs += ch == 'u' ? -1 : 1;
    if (!mux.is_at_work) {
        mux.is_at_work = true;
        mux.chr = chr;
        mux.focus = d->focus;
        mux.typed = d->prod[d->focus];
        tt_undo_hold_terminals(true);
        object_ref(OBJECT(chr));
        qemu_coroutine_enter(qemu_coroutine_create(work, chr));
    } else if (mux.chr == chr) {
        mux.focus = d->focus;
        mux.typed = d->prod[d->focus];
    }
    return true;
}

/* ---- before QEMU's handler ---- */

static void (*set_qemu_handlers)(Chardev *chr);
static IOReadHandler *qemu_read;

static void read_bytes(void *opaque, const uint8_t *buf, int size)
{
    MuxChardev *d = MUX_CHARDEV(opaque);

    for (int i = 0; i < size; i++) {
        if (d->term_got_escape && buf[i] != term_escape_char && key(opaque, buf[i])) {
            d->term_got_escape = false;
        } else {
            qemu_read(opaque, &buf[i], 1);
        }
    }
}

static void set_handlers(Chardev *chr)
{
    MuxChardev *d = MUX_CHARDEV(chr);

    set_qemu_handlers(chr);
    if (d->chr.chr_read != read_bytes) {
        qemu_read = d->chr.chr_read;
        d->chr.chr_read = read_bytes;
    }
}

void tt_mux_keys_init(void)
{
    ChardevClass *cc = CHARDEV_CLASS(object_class_by_name(TYPE_CHARDEV_MUX));

    set_qemu_handlers = cc->chr_update_read_handler;
    cc->chr_update_read_handler = set_handlers;
}
