/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A replay's frames of other runs, out of their frame stores.
 *
 * Context: the BQL is held.
 */
#ifndef TT_REPLAY_FRAMES_H
#define TT_REPLAY_FRAMES_H

#include "log/tt-log.h"

/*
 * tt_replay_frames_fill: the bytes that event @ev, of kind TT_EV_PAYLOAD, means
 * @out: room for tt_event_bytes(ev)
 * TT_ERR_FORMAT: the event, or the store, is damaged; TT_ERR_IO: it is not there, or cannot
 * be read. @diag says what to do.
 */
TtStatus tt_replay_frames_fill(const TtEvent *ev, uint8_t *out, TtDiag *diag);

#endif
