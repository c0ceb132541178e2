/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzz target of RUN/marks: any bytes; what counts is within the limits, and stays
 * when a mark is added, which then is the last.
 */
#include "run/tt-marks.h"

#include <stdlib.h>
#include <glib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CHECK(x) do { if (!(x)) { abort(); } } while (0)

typedef struct Seen {
    unsigned n;
    uint64_t sum, last;
} Seen;

static void note(void *opaque, const char *name, uint64_t pos)
{
    Seen *s = opaque;

    CHECK(*name && strlen(name) <= TT_MARK_NAME_BYTES_MAX &&
          !strchr(name, '\n') && pos <= INT64_MAX);
    s->n++;
    s->sum = (s->sum + pos) * 31 + g_str_hash(name);
    s->last = pos;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    g_autofree char *exact = g_memdup2(data, size);
    Seen before = { 0 }, after = { 0 };
    TtIo *io = tt_io_mem_new(data, size);
    unsigned bad = tt_marks_parse(exact, size, note, &before), again;

    CHECK(tt_marks_load(io, note, &after, &again, NULL) == TT_OK);
    CHECK(again == bad && after.n == before.n && after.sum == before.sum);
    CHECK(tt_marks_append(io, "added", 77, NULL) == TT_OK);
    after = (Seen) { 0 };
    CHECK(tt_marks_load(io, note, &after, NULL, NULL) == TT_OK);
    CHECK(after.n == before.n + 1 && after.last == 77);
    tt_io_close(io);
    return 0;
}
