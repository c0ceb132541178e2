/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The places that are asked about, and what is there; the decoder.
 *
 * Context: the vCPU thread, BQL held.
 */
#ifndef TT_ORIGIN_ASK_INT_H
#define TT_ORIGIN_ASK_INT_H

#include "tt-origin-parts-int.h"

TtFlowDecoder *tt_origin_decoder(void);         /* NULL: built without */
/* Where the vCPU's memory at @addr is in RAM, and how many bytes from there in a page.
 * False: nowhere; then *@physical, or UINT64_MAX if it is not mapped. */
bool tt_origin_ram(unsigned cpu, uint64_t addr, uint64_t *ram, unsigned *len,
                   uint64_t *physical);
/* The value there now. False: it cannot be read. */
bool tt_origin_read(const TtOriginPlace *place, uint8_t *value);
/* Puts a question, or several, of @place as it is now; or says that it is no RAM. */
void tt_origin_put_place(const TtFlowPlace *place, unsigned cpu, TtOriginQuestion *q);
/* The place that @text names, here. False: *errp. */
bool tt_origin_parse(const char *text, TtFlowPlace *place, Error **errp);

#endif
