/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The states that undo and redo go to. See tt-undolist.h. */
#include "timeline/tt-undolist.h"

#include <assert.h>
#include <glib.h>

struct TtUndoList {
    GArray *points;                 /* of TtUndoPoint */
    size_t at;
};

TtUndoList *tt_undolist_new(void)
{
    TtUndoList *u = g_new0(TtUndoList, 1);

    u->points = g_array_new(false, false, sizeof(TtUndoPoint));
    return u;
}

void tt_undolist_free(TtUndoList *u)
{
    if (u) {
        g_array_unref(u->points);
        g_free(u);
    }
}

void tt_undolist_add(TtUndoList *u, const TtUndoPoint *p)
{
    TtUndoPoint point = *p;

    g_array_set_size(u->points, u->at);
    if (u->at == TT_UNDO_MAX) {
        g_array_remove_range(u->points, 0, TT_UNDO_MAX / 10);
    }
    g_array_append_val(u->points, point);
    u->at = u->points->len;
}

size_t tt_undolist_undos(const TtUndoList *u)
{
    return u->at;
}

size_t tt_undolist_redos(const TtUndoList *u)
{
    return u->at < u->points->len ? u->points->len - u->at - 1 : 0;
}

void tt_undolist_leave(TtUndoList *u, const TtUndoPoint *p)
{
    TtUndoPoint point = *p;

    assert(!tt_undolist_redos(u));
    g_array_set_size(u->points, u->at);
    g_array_append_val(u->points, point);
}

const TtUndoPoint *tt_undolist_at(const TtUndoList *u, int64_t n)
{
    bool is_there = n < 0 ? -(uint64_t)n <= u->at :
        (uint64_t)n <= tt_undolist_redos(u) && u->at < u->points->len;

    return is_there ? &g_array_index(u->points, TtUndoPoint, u->at + n) : NULL;
}

void tt_undolist_go(TtUndoList *u, int64_t n)
{
    assert(tt_undolist_at(u, n));
    u->at += n;
}

/* ---- where an input begins ---- */

#define CTRL_C 3
#define CTRL_D 4

static bool is_end(uint8_t byte)
{
    return byte == '\r' || byte == '\n' || byte == CTRL_C || byte == CTRL_D;
}

bool tt_typing_begins(TtTyping *t, uint8_t byte, int64_t now_ms, int64_t pause_ms)
{
    bool is_late = t->has_any && now_ms - t->last_ms >= pause_ms;
    bool is_pair = t->last == '\r' && byte == '\n' && !is_late;
    bool begins = !is_pair && (!t->has_any || t->is_at_end || is_late);

    t->has_any = true;
    t->is_at_end = is_end(byte);
    t->last = byte;
    t->last_ms = now_ms;
    return begins;
}
