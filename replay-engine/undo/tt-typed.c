/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Typed input waits here until there is a full checkpoint of the state before it: a
 * line on a serial port or a virtio console, a burst of keys on a keyboard.
 *
 *   device's handler --> held --> checkpoint is on disk --> device's handler, again
 *
 * Order is kept, also among devices. When no checkpoint can be taken the input goes on
 * without one, and that is said once. Bytes for which a device has no room yet wait until
 * it has; only the bytes after them on the same terminal wait with them.
 */
#include "qemu/osdep.h"
#include "checkpoint/tt-checkpointer.h"
#include "record/tt-record-options.h"
#include "session/tt-session.h"
#include "tt-undo-int.h"
#include "undo/tt-undo.h"
#include "tt/hooks.h"
#include "qapi/error.h"
#include "chardev/char.h"
#include "chardev/char-fe.h"
#include "chardev/chardev-internal.h"
#include "hw/qdev-core.h"
#include "qapi/clone-visitor.h"
#include "qapi/qapi-visit-ui.h"
#include "qemu/error-report.h"
#include "qemu/queue.h"
#include "qemu/timer.h"
#include "ui/input.h"

#define STEP_MS     1
#define ROOM_MS     10                  /* a device without room is asked again */
#define TERMINALS   64                  /* that are told apart */

typedef struct Held {
    bool begins;                        /* an input: a checkpoint comes first */
    bool is_stuck;                      /* there was no room for it */
    CharBackend *chr;                   /* NULL: a key */
    TtDeliver *deliver;
    DeviceState *dev;
    Object *owner;                      /* a reference: @dev may be a part of it */
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
    bool is_passing, has_told;
    bool is_on_hold;                    /* no terminal gives anything */
    Held *taken_for;                    /* whose checkpoint is being taken */
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
    const Held *k;

    QSIMPLEQ_FOREACH(k, &ty.held, next) {
        if (!k->is_stuck) {
            return true;
        }
    }
    return false;
}

/* What is typed now comes after that: also the rest of an input. */
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
        object_unref(k->owner);
        g_byte_array_unref(k->bytes);
    }
    qapi_free_InputEvent(k->evt);
    g_free(k);
}

static bool is_held(const CharBackend *chr)
{
    const Held *k;

    QSIMPLEQ_FOREACH(k, &ty.held, next) {
        if (k->chr == chr) {
            return true;
        }
    }
    return false;
}

/* Its own bytes may go to the device. */
bool tt_typed_waits_slow(const CharBackend *chr)
{
    return !ty.is_passing && (ty.is_on_hold || is_held(chr));
}

/* As the backend would do it. What had room when it was typed may have none now: an undo
 * may have filled the device, or its driver may have changed its mode. */
static void pass_bytes(Held *k)
{
    unsigned n;

    while (k->bytes->len) {
        n = MAX(0, k->chr->chr_can_read(k->chr->opaque));
        n = MIN(n, k->bytes->len);
        if (!n) {
            return;
        }
        k->deliver(k->dev, k->bytes->data, n);
        g_byte_array_remove_range(k->bytes, 0, n);
    }
}

/* The device may have been unplugged, or its chardev taken away. */
static bool can_take_bytes(const Held *k)
{
    return k->chr && k->dev->realized && k->chr->chr_can_read;
}

/* False: there was no room for all of it. */
static bool pass_on(Held *k)
{
    bool is_whole = true;

    ty.is_passing = true;
    if (can_take_bytes(k)) {
        pass_bytes(k);
        is_whole = !k->bytes->len;
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
    return is_whole;
}

static void forget(Held *k)
{
    CharBackend *accepts = can_take_bytes(k) ? k->chr : NULL;

    QSIMPLEQ_REMOVE(&ty.held, k, Held, next);
    free_held(k);
    if (accepts && !is_held(accepts)) {
        qemu_chr_fe_accept_input(accepts);
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
    ty.taken_for->begins = false;
    ty.taken_for = NULL;
}

/* False: later. */
static bool take(Held *k)
{
    if (!ty.taken_for) {
        ty.taken_for = k;
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

/* Is something of the same terminal before it, or of the keys? */
static bool is_behind_another(const Held *k)
{
    const Held *before = QSIMPLEQ_FIRST(&ty.held);

    while (before != k && before->chr != k->chr) {
        before = QSIMPLEQ_NEXT(before, next);
    }
    return before != k;
}

static bool has_room(const Held *k)
{
    bool has;

    ty.is_passing = true;
    has = !can_take_bytes(k) || k->chr->chr_can_read(k->chr->opaque) > 0;
    ty.is_passing = false;
    return has;
}

static void step(void *opaque)
{
    Held *k, *next;

    QSIMPLEQ_FOREACH_SAFE(k, &ty.held, next, next) {
        if (tt_undo_is_at_work() || (ty.taken_for && !take(ty.taken_for))) {
            wake(STEP_MS);
            return;
        }
        k->is_stuck = (k->chr && is_behind_another(k)) || !has_room(k);
        if (k->is_stuck) {
            continue;
        }
        if (k->begins && !take(k)) {
            wake(STEP_MS);
            return;
        }
        k->is_stuck = !pass_on(k);
        if (!k->is_stuck) {
            forget(k);
        }
    }
    if (!QSIMPLEQ_EMPTY(&ty.held)) {
        wake(tt_typed_is_any() ? 0 : ROOM_MS);
    }
}

/* ---- from the terminal ---- */

static void hold(Held *k)
{
    wake(0);
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
    for (k->owner = OBJECT(device); !k->owner->free && k->owner->parent; ) {
        k->owner = k->owner->parent;
    }
    object_ref(k->owner);
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
        return false;               /* in the middle of an input */
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

/* The backends that wait for a device's word: it may be another one now. */
static int accept_input(Object *obj, void *opaque)
{
    Chardev *chr = CHARDEV(obj);

    if (CHARDEV_IS_MUX(chr) && MUX_CHARDEV(chr)->focus < 0) {
        return 0;                       /* nobody uses it */
    }
    if (CHARDEV_GET_CLASS(chr)->chr_accept_input) {
        CHARDEV_GET_CLASS(chr)->chr_accept_input(chr);
    }
    return 0;
}

static void accept_all_input(void)
{
    object_child_foreach(object_get_container("chardevs"), accept_input, NULL);
}

void tt_undo_hold_terminals(bool on)
{
    ty.is_on_hold = on;
    if (!on) {
        accept_all_input();
    }
}

/* What found no room before the undo was typed before it, and is undone. */
void tt_typed_anew(void)
{
    Held *k, *next;

    QSIMPLEQ_FOREACH_SAFE(k, &ty.held, next, next) {
        if (k->is_stuck) {
            QSIMPLEQ_REMOVE(&ty.held, k, Held, next);
            free_held(k);
        }
    }
    QSIMPLEQ_FOREACH(k, &ty.held, next) {
        k->begins |= k->chr && !is_behind_another(k);
    }
    memset(ty.terminal, 0, sizeof(ty.terminal));
    ty.key_ms = 0;
    accept_all_input();
}

void tt_typed_begin(int64_t pause_ms)
{
    ty.pause_ms = pause_ms;
    tt_undo_is_on = true;
}
