/* SPDX-License-Identifier: GPL-2.0-or-later */
/* `tt time`: prints what time it was at a position (log/tt-timeat.h). */
#include "tt-tool.h"
#include "log/tt-timeat.h"

#include <inttypes.h>
#include <stdio.h>

static void print_moment(const char *what, const TtMoment *m)
{
    g_autofree char *pos = tool_number(m->pos);

    if (!m->is_there) {
        printf("%-10s none: the log has no later time\n", what);
        return;
    }
    printf("%-10s position %s, host %.6f s", what, pos, m->host_ns / 1e9);
    if (m->has_tsc) {
        printf(", TSC %" PRIu64, m->tsc);
    }
    putchar('\n');
}

static void print(const TtTimeAt *s)
{
    g_autofree char *pos = tool_number(s->pos), *read_at = tool_number(s->read_at);

    printf("position   %s\n", pos);
    printf("host       %.6f s since the run began%s\n", s->host_ns / 1e9,
           s->later.is_there ? "" : ", or later");
    if (s->has_tsc) {
        printf("TSC        %" PRIu64 "\n", s->tsc);
    }
    if (s->has_read) {
        printf("guest read TSC %" PRIu64 " at position %s\n", s->read_tsc, read_at);
    }
    if (s->ns_per_instruction >= 0) {
        printf("speed      %.2f ns an instruction\n", s->ns_per_instruction);
    }
    print_moment("earlier", &s->earlier);
    print_moment("later", &s->later);
}

static void json_moment(const char *name, const TtMoment *m)
{
    if (!m->is_there) {
        printf(", \"%s\": null", name);
        return;
    }
    printf(", \"%s\": {\"position\": %" PRIu64 ", \"host_ns\": %" PRIu64, name, m->pos,
           m->host_ns);
    if (m->has_tsc) {
        printf(", \"tsc\": %" PRIu64, m->tsc);
    }
    putchar('}');
}

static void print_json(const TtTimeAt *s)
{
    tool_json_begin();
    printf("\"position\": %" PRIu64 ", \"host_ns\": %" PRIu64, s->pos, s->host_ns);
    if (s->has_tsc) {
        printf(", \"tsc\": %" PRIu64, s->tsc);
    }
    if (s->has_read) {
        printf(", \"read\": {\"position\": %" PRIu64 ", \"tsc\": %" PRIu64 "}",
               s->read_at, s->read_tsc);
    }
    if (s->ns_per_instruction >= 0) {
        printf(", \"ns_per_instruction\": %.3f", s->ns_per_instruction);
    }
    json_moment("earlier", &s->earlier);
    json_moment("later", &s->later);
    puts("}");
}

int tool_time(const ToolArgs *a)
{
    TtManifest m = { 0 };
    TtTimeAt at;
    uint64_t pos;
    TtLogReader *r;
    TtStatus status;
    TtDiag diag;
    int result;

    result = tool_position(a, "POS", a->operand[1], &pos);
    if (result != TOOL_FINE) {
        return result;
    }
    r = tool_open_run(a->operand[0], &m);
    if (!r) {
        return TOOL_PROBLEM;
    }
    if (!tool_totals(r).n_segments) {
        result = tool_complain(TOOL_EMPTY_RUN, a->operand[0]);
    } else if (pos < tool_totals(r).first_pos || pos > tool_totals(r).end_pos) {
        tool_complain("position %" PRIu64 " is outside the run, which goes from %" PRIu64
                      " to %" PRIu64, pos, tool_totals(r).first_pos,
                      tool_totals(r).end_pos);
        result = TOOL_USAGE;
    } else {
        status = tt_time_at(r, pos, !(m.rules & TT_RULE_KVM), &at, &diag);
        result = status == TT_OK ? tool_log_status(r) : tool_problem(&diag);
        if (status == TT_OK) {
            (tool_has(a, "--json") ? print_json : print)(&at);
        }
    }
    tt_log_reader_free(r);
    tt_manifest_cleanup(&m);
    return result;
}
