/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Typed input waits here until there is a full checkpoint of the state before it: a
 * line on a serial port or a virtio console, a burst of keys on a keyboard.
 *
 *   device's handler --> held --> checkpoint is on disk --> device's handler, again
 *
 * Order is kept, also among devices. When no checkpoint can be taken the input goes on
 * without one, and that is said once.
 */
#include "qemu/osdep.h"
#include "checkpoint/tt-checkpointer.h"
#include "record/tt-record-options.h"
#include "session/tt-session.h"
#include "tt-undo-int.h"
#include "tt/hooks.h"
#include "qapi/error.h"
#include "chardev/char-fe.h"
#include "hw/qdev-core.h"
#include "qapi/clone-visitor.h"
#include "qapi/qapi-visit-ui.h"
#include "qemu/error-report.h"
#include "qemu/queue.h"
#include "qemu/timer.h"
#include "ui/input.h"

#define STEP_MS     1
#define TERMINALS   64                  /* that are told apart */

typedef struct Held {
    bool begins;                        /* an input: a checkpoint comes first */
    CharBackend *chr;                   /* NULL: a key */
    TtDeliver *deliver;
    DeviceState *dev;                   /* a reference */
    GByteArray *bytes;
    QemuConsole *src;
    InputEvent *evt;                    /* NULL: the end of some */
    QSIMPLEQ_ENTRY(Held) next;
} Held;

bool tt_undo_is_on;

static struct {
    QSIMPLEQ_HEAD(, Held) held;
    QEMUTimer *timer;
    int64_t pause_ms;
    bool is_taking, is_passing, has_told;
    TtCheckpointerTask task;
    struct {
        const CharBackend *chr;
        TtTyping typing;
    } terminal[TERMINALS];
    int64_t key_ms;                     /* of the last key that went down */
} ty = { .held = QSIMPLEQ_HEAD_INITIALIZER(ty.held) };

static int64_t now_ms(void)
{
    return qemu_clock_get_ms(QEMU_CLOCK_REALTIME);
}

static void step(void *opaque);

/* QEMU has no clocks yet when it reads its options. */
static void wake(int64_t in_ms)
{
    if (!ty.timer) {
        ty.timer = timer_new_ms(QEMU_CLOCK_REALTIME, step, NULL);
    }
    timer_mod(ty.timer, now_ms() + in_ms);
}

/* Only what is recorded here and now has a state to go back to. */
static bool is_held_now(void)
{
    return !ty.is_passing && tt_record_options.undo && tt_recording() &&
        tt_session.live && !tt_past;
}

bool tt_typed_is_any(void)
{
    return !QSIMPLEQ_EMPTY(&ty.held);
}

/* Keys typed now come after that: also the rest of an input. */
static bool must_wait(void)
{
    return tt_typed_is_any() || tt_undo_is_at_work();
}

/* ---- to the guest ---- */

static TtTyping *typing_on(const CharBackend *chr)
{
    unsigned i = 0;

    while (i < TERMINALS - 1 && ty.terminal[i].chr && ty.terminal[i].chr != chr) {
        i++;
    }
    ty.terminal[i].chr = chr;
    return &ty.terminal[i].typing;
}

static void free_held(Held *k)
{
    if (k->chr) {
        object_unref(OBJECT(k->dev));
        g_byte_array_unref(k->bytes);
    }
    qapi_free_InputEvent(k->evt);
    g_free(k);
}

bool tt_typed_waits_slow(const CharBackend *chr)
{
    const Held *k;

    QSIMPLEQ_FOREACH(k, &ty.held, next) {
        if (k->chr == chr) {
            return true;
        }
    }
    return false;
}

/* The device may have been unplugged meanwhile. */
static void pass_on(const Held *k)
{
    ty.is_passing = true;
    if (k->chr && k->dev->realized) {
        k->deliver(k->dev, k->bytes->data, k->bytes->len);
    } else if (k->evt) {
        qemu_input_event_send(k->src, k->evt);
    } else if (!k->chr) {
        qemu_input_event_sync();
    }
    ty.is_passing = false;
    if (k->chr) {
        typing_on(k->chr)->last_ms = now_ms();  /* the wait was ours, no pause */
    } else {
        ty.key_ms = now_ms();
    }
    if (k->chr && k->dev->realized && !tt_typed_waits_slow(k->chr)) {
        qemu_chr_fe_accept_input(k->chr);
    }
}

/* ---- the checkpoint before ---- */

static void end_task(void)
{
    TtUndoPoint p = tt_undo_point(ty.task.err ? TT_UNDO_NO_POINT : ty.task.id);

    tt_undolist_add(tt_undo_list(), &p);
    if (ty.task.err && !ty.has_told) {
        ty.has_told = true;
        warn_report("tt: what is typed now cannot be undone: %s",
                    error_get_pretty(ty.task.err));
    }
    error_free(ty.task.err);
    g_string_free(ty.task.full, true);
    ty.is_taking = false;
}

/* False: later. */
static bool take(void)
{
    if (!ty.is_taking) {
        ty.is_taking = true;
        ty.task = (TtCheckpointerTask) {
            .kind = TT_CHECKPOINTER_ADD, .full = g_string_new(NULL), .is_thinned = true,
        };
    }
    if (!tt_checkpointer_step(&ty.task)) {
        return false;
    }
    end_task();
    return true;
}

static void step(void *opaque)
{
    Held *k;

    while ((k = QSIMPLEQ_FIRST(&ty.held))) {
        if (tt_undo_is_at_work() || (k->begins && !take())) {
            wake(STEP_MS);
            return;
        }
        QSIMPLEQ_REMOVE_HEAD(&ty.held, next);
        pass_on(k);
        free_held(k);
    }
}

/* ---- from the terminal ---- */

static void hold(Held *k)
{
    if (QSIMPLEQ_EMPTY(&ty.held)) {
        wake(0);
    }
    QSIMPLEQ_INSERT_TAIL(&ty.held, k, next);
}

static void hold_bytes(CharBackend *chr, TtDeliver *deliver, void *device,
                       const uint8_t *buf, int size, bool begins)
{
    Held *k = g_new0(Held, 1);

    k->begins = begins;
    k->chr = chr;
    k->deliver = deliver;
    k->dev = device;
    object_ref(OBJECT(device));
    k->bytes = g_byte_array_new();
    g_byte_array_append(k->bytes, buf, size);
    hold(k);
}

bool tt_typed_slow(CharBackend *chr, TtDeliver *deliver, void *device,
                   const uint8_t *buf, int size)
{
    TtTyping *typing = typing_on(chr);
    bool is_held = is_held_now(), waits = must_wait(), begins = false;
    int64_t now = now_ms();
    int from = 0;

    if (ty.is_passing) {
        return false;
    }
    for (int i = 0; i < size; i++) {
        bool is_first = tt_typing_begins(typing, buf[i], now, ty.pause_ms);

        if (is_first && i > from && is_held) {
            hold_bytes(chr, deliver, device, buf + from, i - from, begins);
            from = i;
        }
        if (i == from) {
            begins = is_first;
        }
    }
    if (!waits && (!is_held || (!begins && !from))) {
        return false;               /* in the midst of an input */
    }
    hold_bytes(chr, deliver, device, buf + from, size - from, begins);
    return true;
}

/* ---- from the keyboard ---- */

static bool begins_keys(const InputEvent *evt)
{
    bool begins;

    if (!evt || evt->type != INPUT_EVENT_KIND_KEY || !evt->u.key.data->down) {
        return false;
    }
    begins = !ty.key_ms || now_ms() - ty.key_ms >= ty.pause_ms;
    ty.key_ms = now_ms();
    return begins;
}

bool tt_key_typed_slow(QemuConsole *src, InputEvent *evt)
{
    bool begins;
    Held *k;

    if (ty.is_passing || (!must_wait() && !is_held_now())) {
        return false;
    }
    begins = is_held_now() && begins_keys(evt);
    if (!begins && !must_wait()) {
        return false;
    }
    k = g_new0(Held, 1);
    k->begins = begins;
    k->src = src;
    k->evt = evt ? QAPI_CLONE(InputEvent, evt) : NULL;
    hold(k);
    return true;
}

void tt_typed_anew(void)
{
    memset(ty.terminal, 0, sizeof(ty.terminal));
    ty.key_ms = 0;
}

void tt_typed_begin(int64_t pause_ms)
{
    ty.pause_ms = pause_ms;
    tt_undo_is_on = true;
}
