/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Decoder: the event bytes of one segment into an array. Private to the log.
 */
#ifndef TT_LOG_DECODER_H
#define TT_LOG_DECODER_H

#include "log/tt-log.h"

/*
 * tt_log_decode: decode @info->n_events events into @events
 * @flags: of the segment's header. @ev: @info->ev_raw bytes; @pl: @info->pl_raw bytes. The
 * events' data pointers lead into both, and into @told, which is set if R13 makes data:
 * g_free, also after a failure. Checks R5, R9 and R13 and everything about single events;
 * trusts nothing but the two lengths.
 * Returns TT_OK, TT_ERR_FORMAT, TT_ERR_LIMIT, TT_ERR_VERSION or TT_ERR_NOMEM.
 */
TtStatus tt_log_decode(const TtSegInfo *info, uint32_t flags, const uint8_t *ev,
                       const uint8_t *pl, TtEvent *events, uint8_t **told, TtDiag *diag);

#endif
