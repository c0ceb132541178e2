/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Hooks of typed input: serial ports, virtio consoles, keyboards. Part of tt/hooks.h.
 * Main thread, BQL held.
 *
 * With -tt record,undo=console an input waits until there is a checkpoint of the state
 * before it.
 */
#ifndef TT_HOOKS_UNDO_H
#define TT_HOOKS_UNDO_H

extern bool tt_undo_is_on;

struct CharBackend;
struct InputEvent;
struct QemuConsole;

typedef void TtDeliver(void *device, const uint8_t *buf, int size);

/* Bytes for the guest: true, @deliver is called with them later. @device: a device of
 * QEMU's. */
bool tt_typed_slow(struct CharBackend *chr, TtDeliver *deliver, void *device,
                   const uint8_t *buf, int size);
bool tt_typed_waits_slow(const struct CharBackend *chr);
/* A key, or what else an input device tells; NULL: that was all for now. True: it comes
 * again later. */
bool tt_key_typed_slow(struct QemuConsole *src, struct InputEvent *evt);

static inline bool tt_typed(struct CharBackend *chr, TtDeliver *deliver, void *device,
                            const uint8_t *buf, int size)
{
    return __builtin_expect(tt_undo_is_on, 0) &&
        tt_typed_slow(chr, deliver, device, buf, size);
}

/* Bytes of @chr wait: it takes no more until they are with the guest. */
static inline bool tt_typed_waits(const struct CharBackend *chr)
{
    return __builtin_expect(tt_undo_is_on, 0) && tt_typed_waits_slow(chr);
}

static inline bool tt_key_typed(struct QemuConsole *src, struct InputEvent *evt)
{
    return __builtin_expect(tt_undo_is_on, 0) && tt_key_typed_slow(src, evt);
}

#endif
