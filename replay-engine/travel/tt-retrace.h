/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A branch trace of a part of a run that is replayed.
 *
 * Context, unless said otherwise: the BQL is held.
 */
#ifndef TT_RETRACE_H
#define TT_RETRACE_H

/* Before the options. A recording then makes the trace that is asked for. */
void tt_retrace_init(void);
/* "all", FROM- or FROM-TO, which is above FROM. False: something else. */
bool tt_part_parse(const char *text, uint64_t *from, uint64_t *to);
/* The mode is known. @part: NULL for all. False: no such part. */
bool tt_trace_option(const char *path, const char *part);
bool tt_retrace_is_on(void);            /* a replay, which then ends by itself */

#endif
