/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the main loop does while it does not have its lock: output to the outside is sent,
 * input is received, and answered, without the execution token, as far as the guest
 * cannot see it. The token is taken for the rest only: giving it away and back costs more
 * than most messages do, and no vCPU runs meanwhile.
 */
#ifndef TT_POLL_H
#define TT_POLL_H

#include "qemu/queue.h"

/*
 * Belongs to who adds it, and is freed by call_rcu; it may be removed and added again. The
 * functions are called in the main loop's thread, without the BQL, in an RCU read section.
 * @before: the main loop is about to sleep. NULL is fine.
 * @ready: the descriptor is, for reading. True: that was all; the main loop sleeps on.
 * False: the descriptor's handler (qemu_set_fd_handler, or a GSource) is called now, also if
 * nothing can be read any more; unless GLib drops the round, as it does when another thread
 * has changed what is polled. So what is left for a handler has to be looked for in @before.
 */
typedef struct TtPoll {
    int fd;                             /* -1: none for now */
    void (*before)(void *opaque);
    bool (*ready)(void *opaque);
    void *opaque;
    QLIST_ENTRY(TtPoll) next;
} TtPoll;

/*
 * Something that the guest can see is to be done: the vCPU's thread calls @func, with the BQL,
 * when it leaves guest code, which it is asked to do. So the token need not change hands.
 * @func writes RAM and raises interrupts, no more. False: it is not called; no guest code
 * is running, or it is better left alone. Any thread, without a lock. @opaque must be there
 * until then.
 */
bool tt_poll_ask_vcpu(void (*func)(void *opaque), void *opaque);
/* After that: is it called soon, since guest code still runs? If not, take the lock and do it.
 * Asks again. */
bool tt_poll_is_vcpu_asked(void);

/* BQL. */
void tt_poll_add(TtPoll *p);
void tt_poll_remove(TtPoll *p);

#endif
