/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Branch traces of what runs, recording or replay: trace/tt-trace.h.
 *
 * The file, where it begins and ends, and what is put in. The backend of the vCPUs
 * reports where control went elsewhere (accel-tt/tcg/tt-tcg-trace.c).
 *
 * Context: vCPU thread, BQL held; begin and end also others that hold it.
 */
#include "qemu/osdep.h"
#include "accel-tt/tt-branch-trace.h"
#include "accel-tt/tt-position.h"
#include "accel-tt/tt-vcpus.h"
#include "io/tt-base.h"
#include "io/tt-io.h"
#include "session/tt-paths.h"
#include "session/tt-session.h"
#include "trace/tt-trace.h"
#include "tt/hooks.h"
#include "qapi/error.h"
#include "hw/core/cpu.h"
#include "qemu/error-report.h"

QEMU_BUILD_BUG_ON(TT_TRACE_CPUS_MAX < TT_VCPUS_MAX);

bool tt_trace_is_on;
TtTracedVcpu tt_traced[TT_VCPUS_MAX];

static struct {
    char *path;                 /* NULL: there is none */
    TtIo *io;                   /* until it begins */
    TtTraceWriter *writer;      /* since then */
    uint64_t from, to;          /* asked for */
    uint64_t began;
    TtDiag failure;             /* nothing could be written; status TT_OK: none */
} trace;

static bool has_failed;         /* one of them, ever */

/* ---- beginning and end ---- */

bool tt_trace_begin(const char *path, uint64_t from, uint64_t to,
                    Error **errp)
{
    TtDiag diag;

    if (!tt_backend->report_branches) {
        error_setg(errp, "a branch trace cannot be written with -accel %s: trace a "
                   "replay", tt_backend->name);
        return false;
    }
    if (trace.path) {
        error_setg(errp, "a trace is already being written to '%s': stop it first ('tt "
                   "trace stop', in QMP tt-trace-stop)", tt_printable(trace.path));
        return false;
    }
    if (MAX(from, tt_now.pos) >= TT_TRACE_POS_MAX) {
        error_setg(errp, "a trace can hold only positions below %llu",
                   TT_TRACE_POS_MAX);
        return false;
    }
    if (tt_io_posix_create(path, &trace.io, &diag) != TT_OK) {
        error_setg(errp, "%s", diag.text);
        return false;
    }
    trace.path = g_strdup(path);
    trace.from = from;
    trace.to = MIN(to, TT_TRACE_POS_MAX - 1);
    tt_trace_is_on = true;
    return true;
}

static void open_writer(void)
{
    TtIo *io = g_steal_pointer(&trace.io);
    TtStatus s = tt_trace_writer_new(io, tt_session.manifest.uuid, tt_now.pos,
                                     &trace.writer, &trace.failure);

    trace.began = tt_now.pos;
    if (s != TT_OK) {
        trace.failure.status = s;
        trace.from = UINT64_MAX;        /* it never comes */
    }
}

/* The file has nothing in it. */
static void give_up(Error **errp)
{
    tt_io_close(trace.io);
    unlink(trace.path);
    if (trace.failure.status) {
        error_setg(errp, "there is no trace: %s", trace.failure.text);
    } else {
        error_setg(errp, "there is no trace: the run did not reach position %" PRIu64 ", "
                   "where the trace was to begin", trace.from);
    }
}

bool tt_trace_end(TtTraced *t, Error **errp)
{
    TtStatus s = TT_ERR_INVALID;
    TtDiag diag;

    if (!trace.path) {
        error_setg(errp, "no trace is being written");
        return false;
    }
    if (!trace.writer && tt_now.pos >= trace.from) {
        open_writer();          /* nothing ran since */
    }
    *t = (TtTraced) { .path = g_intern_string(trace.path), .from = tt_now.pos,
                      .to = tt_now.pos };
    if (trace.writer) {
        s = tt_trace_finish(trace.writer, tt_now.pos, &diag);
        t->from = trace.began;
        t->branches = tt_trace_count(trace.writer);
        t->bytes = tt_trace_bytes(trace.writer);
        if (s != TT_OK) {
            error_setg(errp, "the trace is incomplete: %s; what was written so far is "
                       "kept", diag.text);
        }
    } else {
        give_up(errp);
    }
    tt_trace_writer_free(trace.writer);
    g_free(trace.path);
    memset(&trace, 0, sizeof(trace));
    memset(tt_traced, 0, sizeof(tt_traced));
    tt_trace_is_on = false;
    tt_backend->report_branches(false);
    has_failed |= s != TT_OK;
    return s == TT_OK;
}

bool tt_trace_has_failed(void)
{
    return has_failed;
}

void tt_trace_end_and_tell(void)
{
    Error *err = NULL;
    TtTraced t;

    if (!trace.path) {
        return;
    }
    if (tt_trace_end(&t, &err)) {
        error_printf("tt: traced positions %" PRIu64 " to %" PRIu64 ", %" PRIu64
                     " branches, %" PRIu64 " bytes in %s\n", t.from, t.to,
                     t.branches, t.bytes, tt_printable(t.path));
    } else {
        error_reportf_err(err, "tt: ");
    }
}

/* ---- between two turns ---- */

void tt_trace_turn(void)
{
    if (!tt_past && !trace.writer && tt_now.pos >= trace.from) {
        open_writer();
    }
    if (!tt_past && trace.writer && tt_now.pos >= trace.to) {
        tt_trace_end_and_tell();
    }
    tt_backend->report_branches(trace.writer && !tt_past);
}

uint64_t tt_trace_limit(void)
{
    return tt_past ? UINT64_MAX : trace.writer ? trace.to : trace.from;
}

/* ---- inside ---- */

void tt_trace_jumped(CPUState *cpu, uint64_t pos, uint64_t pc)
{
    TtTracedVcpu *v = &tt_traced[cpu->cpu_index];
    TtBranch b = {
        .pos = pos, .pc = pc, .cpu = cpu->cpu_index, .is_start = !v->has_begun,
    };

    if (trace.writer) {
        v->has_begun = true;
        tt_trace_put(trace.writer, &b);
    }
}
