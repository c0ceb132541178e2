/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Two files in memory and everything that was done to them, in order: so that a
 * test can have them as they were at any byte.
 */
#ifndef TT_PAGEFILE_TRACE_H
#define TT_PAGEFILE_TRACE_H

#include "io/tt-io.h"

#include <glib.h>

typedef struct Trace {
    GArray *events;             /* private, but for its length */
    GByteArray *file[2];
    bool is_full;               /* appends fail, half done */
    unsigned n_replaced, n_punched, n_truncated;
} Trace;

Trace *trace_new(void);
void trace_free(Trace *t);
/* File @which, 0 or 1; closing it leaves the file as it is. */
TtIo *trace_io(Trace *t, unsigned which);
/* How many bytes event @i appended; 0 for others. */
size_t trace_event_bytes(const Trace *t, size_t i);
/* The files after @event events and @byte bytes of the next one. */
void trace_replay(const Trace *t, size_t event, size_t byte,
                  GByteArray *file[2]);

#endif
