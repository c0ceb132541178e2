/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The one way in which monitor commands wait. Context: main thread, BQL held.
 *
 * A step is called again and again until it returns true. It is always called
 * outside of coroutines, so it may stop the VM, and it must not sleep. No other step is
 * called until it returns, even if it turns an AioContext.
 */
#ifndef TT_WAIT_H
#define TT_WAIT_H

typedef bool TtWaitStep(void *opaque);

/* Main thread, at the start. */
void tt_wait_init(void);

/*
 * Returns when @step has returned true. The main loop goes on meanwhile: timers,
 * devices and other monitors are served.
 *
 * In a coroutine (QMP, jobs) this yields. Elsewhere (HMP, gdb) it turns the main
 * loop itself. Such turns nest: whoever began to wait last comes back first, and the
 * monitor that waits is not served (GLib does not call a source in its own handler).
 * So a command that can be a coroutine is one.
 */
void tt_wait(TtWaitStep *step, void *opaque);
/* Something that is waited for may be there: ask again soon, not at the next tick. Any
 * thread. */
void tt_wait_kick(void);

#endif
