/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tt group: what a VM sends when its group goes on from a checkpoint, against what it sent
 * from there when it was recorded. Both tt group compare and tt group live --exact ask.
 */
#include "tt-tool-group.h"

#include <inttypes.h>
#include <stdio.h>

static bool has_store(const char *dir, const uint8_t uuid[16])
{
    g_autofree char *path = dir ? tt_framestores_path(dir, uuid) : NULL;

    return path && g_file_test(path, G_FILE_TEST_EXISTS);
}

void group_find_frames(Group *g)
{
    g_autoptr(GHashTable) all = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    GHashTableIter it;
    gpointer dir;

    for (unsigned i = 0; i < g->members->len; i++) {
        if (group_at(g, i)->frames) {
            g_hash_table_add(all, g_strdup(group_at(g, i)->frames));
        }
    }
    for (unsigned i = 0; i < g->members->len; i++) {
        GroupMember *m = group_at(g, i);
        bool has = has_store(m->frames, m->uuid);

        g_hash_table_iter_init(&it, all);
        while (!has && g_hash_table_iter_next(&it, &dir, NULL)) {
            has = has_store(dir, m->uuid);
            if (has) {
                g_free(m->frames);
                m->frames = g_strdup(dir);
            }
        }
    }
}

void group_frames_init(GroupFrames *f, const char *dir, const uint8_t uuid[16])
{
    *f = (GroupFrames) { .list = g_array_new(false, false, sizeof(GroupFrame)),
                         .stores = dir ? tt_framestores_new(dir) : NULL };
    memcpy(f->uuid, uuid, 16);
}

void group_frames_cleanup(GroupFrames *f)
{
    for (unsigned i = 0; f->list && i < f->list->len; i++) {
        g_free(g_array_index(f->list, GroupFrame, i).bytes);
    }
    g_clear_pointer(&f->list, g_array_unref);
    g_clear_pointer(&f->stores, tt_framestores_free);
}

void group_frames_add(GroupFrames *f, uint64_t seq, uint64_t hash, uint32_t len)
{
    GroupFrame x = { .seq = seq, .hash = hash, .len = len };

    g_array_append_val(f->list, x);
}

uint8_t *group_frames_bytes(const GroupFrames *f, const GroupFrame *x, TtDiag *diag)
{
    TtFramePart p = { .seq = x->seq, .hash = x->hash };
    g_autofree uint8_t *bytes = NULL;

    if (x->bytes) {
        return g_memdup2(x->bytes, x->len);
    }
    if (!f->stores) {
        tt_fail(diag, TT_ERR_INVALID, "its bytes are in no frame store that is known here: "
                "-tt record,frames=DIR keeps what a VM sends");
        return NULL;
    }
    memcpy(p.run, f->uuid, sizeof(p.run));
    bytes = g_malloc(x->len);
    return tt_framestores_read(f->stores, &p, x->len, bytes, diag) == TT_OK ?
        g_steal_pointer(&bytes) : NULL;
}

/* ---- the difference ---- */

static TtFrameSeen *seen(const GroupFrames *f)
{
    TtFrameSeen *s = g_new(TtFrameSeen, f->list->len);

    for (unsigned i = 0; i < f->list->len; i++) {
        const GroupFrame *x = &g_array_index(f->list, GroupFrame, i);

        s[i] = (TtFrameSeen) { x->hash, x->len };
    }
    return s;
}

static const GroupFrame *frame_at(const GroupFrames *f, uint32_t i)
{
    return i == TT_FRAMEDIFF_NONE ? NULL : &g_array_index(f->list, GroupFrame, i);
}

void group_difference(GroupDifference *d, const GroupFrames *was, const GroupFrames *is)
{
    g_autofree TtFrameSeen *a = seen(was), *b = seen(is);
    TtFrameDiff diff;

    tt_framediff(&diff, a, was->list->len, b, is->list->len);
    *d = (GroupDifference) {
        .same = diff.same, .changed = diff.changed, .missing = diff.missing,
        .more = diff.more, .byte = -1,
    };
    if (diff.n_pairs) {
        g_autofree uint8_t *x = NULL, *y = NULL;

        d->was = frame_at(was, diff.pairs[0].was);
        d->is = frame_at(is, diff.pairs[0].is);
        if (d->was && d->is) {
            x = group_frames_bytes(was, d->was, &d->why);
            y = x ? group_frames_bytes(is, d->is, &d->why) : NULL;
        }
        if (y) {
            uint32_t at = tt_framediff_byte(x, d->was->len, y, d->is->len);

            d->byte = at;
            d->was_byte = at < d->was->len ? x[at] : -1;
            d->is_byte = at < d->is->len ? y[at] : -1;
        }
    }
    tt_framediff_cleanup(&diff);
}

/* ---- for people ---- */

static void say_byte(const GroupDifference *d)
{
    if (d->byte < 0) {
        printf("hash %016" PRIx64 ", was %016" PRIx64 " (%s)\n", d->is->hash, d->was->hash,
               d->why.text);
    } else if (d->was_byte < 0 || d->is_byte < 0) {
        printf("%s; the first %" PRId64 " bytes are equal\n",
               d->was_byte < 0 ? "longer" : "shorter", d->byte);
    } else {
        printf("byte %" PRId64 " is %02x, was %02x\n", d->byte, d->is_byte, d->was_byte);
    }
}

void group_difference_say(const GroupDifference *d, const char *name)
{
    printf("%-*s %10u %10u %10u %10u\n", tool_width(name, 20), name, d->same,
           d->changed, d->missing, d->more);
    if (d->is && d->was) {
        printf("  first: frame %" PRIu64 " of %u bytes, was frame %" PRIu64 " of %u bytes: ",
               d->is->seq, d->is->len, d->was->seq, d->was->len);
        say_byte(d);
    } else if (d->is || d->was) {
        const GroupFrame *f = d->is ?: d->was;

        printf("  first: frame %" PRIu64 " of %u bytes, hash %016" PRIx64 ", %s\n", f->seq,
               f->len, f->hash, d->is ? "was not there" : "is not there any more");
    }
}

void group_difference_head(const char *what)
{
    printf("%-*s %10s %10s %10s %10s\n", tool_width(what, 20), what, "the same", "different",
           "missing", "more");
}

static void json_frame(const char *name, const GroupFrame *f)
{
    if (f) {
        printf(", \"%s\": {\"sequence\": %" PRIu64 ", \"bytes\": %u, \"hash\": "
               "\"%016" PRIx64 "\"}", name, f->seq, f->len, f->hash);
    }
}

void group_difference_json(const GroupDifference *d, const char *name)
{
    printf("{\"name\": ");
    tool_json_string(name);
    printf(", \"same\": %u, \"different\": %u, \"missing\": %u, \"more\": %u, \"first\": ",
           d->same, d->changed, d->missing, d->more);
    if (d->is || d->was) {
        printf("{\"byte\": ");
        printf(d->byte < 0 ? "null" : "%" PRId64, d->byte);
        json_frame("was", d->was);
        json_frame("is", d->is);
        printf("}}");
    } else {
        printf("null}");
    }
}
