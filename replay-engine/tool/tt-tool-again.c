/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Is it the recording, or the replay? The first wrong interval is replayed once more,
 * with one instruction in each block, which changes nothing but what the translator
 * could have a part in. If the two find the same, the recording lacks something, or has
 * it wrong; if not, the replay is not deterministic, and two branch traces of the
 * interval tell where control parts.
 */
#include "tt-tool-verify.h"

#include <glib/gstdio.h>
#include <stdio.h>
#include <unistd.h>

#define ONE_INSN "tcg,one-insn-per-tb=on"

static void done(void *opaque, ToolPart *p)
{
}

static ToolReplays like(const ToolReplays *all, uint64_t jobs)
{
    return (ToolReplays) {
        .run = all->run, .qemu = all->qemu, .jobs = jobs, .is_over = all->is_over,
        .parts = g_ptr_array_new_with_free_func((GDestroyNotify)tool_part_free),
    };
}

static ToolPart *add_part(ToolReplays *r, const ToolPart *wrong,
                          const char *accel, const char *trace)
{
    ToolPart *p = tool_part_new(wrong->first_wrong, wrong->first_wrong_to);

    p->accel = accel;
    p->trace = trace;
    g_ptr_array_add(r->parts, p);
    return p;
}

/* ---- what the two found ---- */

static char *words_at(const ToolPart *p, unsigned i,
                      const ToolSymbols *symbols)
{
    return i < p->n_first ? tool_finding_words(p->found->pdata[i], symbols) :
        g_strdup(p->first_wrong == UINT64_MAX ? "nothing is wrong" :
                 "nothing more");
}

/* In the midst of a block the program counter, and with it the registers that are
 * shown, is known as that of the block only. */
static bool is_same(const ToolPart *a, const ToolPart *b, unsigned i)
{
    const ToolFinding *x, *y;

    if (i >= a->n_first || i >= b->n_first) {
        return false;
    }
    x = a->found->pdata[i];
    y = b->found->pdata[i];
    return tool_finding_agrees(x, y, strcmp(tool_finding_kind(x), "state") ?
                               "pc" : "text");
}

static bool is_alike(const ToolPart *a, const ToolPart *b,
                     const ToolSymbols *symbols, ToolSecond *s)
{
    for (unsigned i = 0; i < MAX(a->n_first, b->n_first); i++) {
        if (!is_same(a, b, i)) {
            s->first_words = words_at(a, i, symbols);
            s->second_words = words_at(b, i, symbols);
            return false;
        }
    }
    return true;
}

/* ---- where control parts ---- */

static TtTraceReader *open_trace(const char *path)
{
    TtTraceReader *r = NULL;
    TtIo *io;

    return tt_io_posix_open(path, &io, NULL) == TT_OK &&
        tt_trace_open(io, &r, NULL) == TT_OK ? r : NULL;
}

static void compare_traces(const char *a, const char *b, ToolSecond *s)
{
    TtTraceReader *ra = open_trace(a), *rb = ra ? open_trace(b) : NULL;
    TtTraceDiff d;

    if (rb && tt_trace_compare(ra, rb, &d, NULL) == TT_ERR_MISMATCH) {
        s->how = AGAIN_PARTED;
        s->n_last = MIN(d.n_before, 1);
        if (s->n_last) {
            s->last = d.before[d.n_before - 1];
        }
        s->n_first[0] = MIN(d.n_a, 1);
        s->n_first[1] = MIN(d.n_b, 1);
        s->first[0] = d.a[0];
        s->first[1] = d.b[0];
    }
    tt_trace_reader_free(ra);
    tt_trace_reader_free(rb);
}

static void find_parting(const ToolReplays *all, const ToolPart *wrong,
                         ToolSecond *s)
{
    g_autofree char *dir = g_dir_make_tmp("tt-verify-XXXXXX", NULL);
    g_autofree char *a = dir ? g_build_filename(dir, "first", NULL) : NULL;
    g_autofree char *b = dir ? g_build_filename(dir, "second", NULL) : NULL;
    ToolReplays r = like(all, all->jobs);

    if (dir) {
        add_part(&r, wrong, NULL, a);
        add_part(&r, wrong, ONE_INSN, b);
        if (tool_parts_run(&r, done, NULL)) {
            compare_traces(a, b, s);
        }
        unlink(a);
        unlink(b);
        g_rmdir(dir);
    }
    g_ptr_array_free(r.parts, true);
}

void tool_verify_again(const ToolReplays *all, const ToolPart *wrong,
                       const ToolSymbols *symbols, ToolSecond *s)
{
    ToolReplays r;
    ToolPart *second;

    if (wrong->first_wrong >= wrong->first_wrong_to) {
        return;                         /* nothing is executed there */
    }
    r = like(all, 1);
    second = add_part(&r, wrong, ONE_INSN, NULL);
    if (!tool_parts_run(&r, done, NULL) ||
        (!second->is_whole && second->code != TOOL_DIVERGED)) {
        s->how = AGAIN_FAILED;
    } else if (is_alike(wrong, second, symbols, s)) {
        s->how = AGAIN_ALIKE;
    } else {
        s->how = AGAIN_ELSEWHERE;
        find_parting(all, wrong, s);
    }
    g_ptr_array_free(r.parts, true);
}

void tool_second_cleanup(ToolSecond *s)
{
    g_free(s->first_words);
    g_free(s->second_words);
}
