/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tt log: the events of a run.
 */
#include "tt-tool.h"
#include "tt-tool-device.h"

#include <inttypes.h>
#include <stdio.h>

typedef struct Filter {
    uint64_t from, to, limit;
    bool kind_given;
    bool kind[TT_EV_KIND_MAX + 1];
    bool is_json, has_data;
} Filter;

/* ---- one event ---- */

static void print_hex(const uint8_t *data, uint32_t len)
{
    for (uint32_t i = 0; i < len; i++) {
        printf("%02x", data[i]);
    }
}

/* 64-bit numbers as text: not every reader of JSON can keep them. */
static void print_json(const TtEvent *ev, const Filter *f)
{
    const char *kind = tt_event_kind_name(ev->kind);

    tool_json_begin();
    printf("\"position\": %" PRIu64 ", \"kind\": ", ev->pos);
    if (kind) {
        printf("\"%s\"", kind);
    } else {
        printf("%u", ev->kind);
    }
    printf(", \"nested\": %s, \"cpu\": %u, \"size\": %u, \"addr\": \"0x%" PRIx64
           "\", \"val\": \"0x%" PRIx64 "\", \"aux\": %" PRIu32
           ", \"length\": %" PRIu32, tool_json_bool(ev->nested), ev->cpu,
           ev->size, ev->addr, ev->val, ev->aux, ev->len);
    if (ev->kind == TT_EV_MARK || ev->kind == TT_EV_NOTE) {
        g_autofree char *text = g_strndup(ev->len ? (const char *)ev->data
                                          : "", ev->len);

        printf(", \"text\": ");
        tool_json_string(text);
    }
    if (f->has_data && ev->len) {
        printf(", \"data\": \"");
        print_hex(ev->data, ev->len);
        putchar('"');
    }
    puts("}");
}

static void print_event(const TtEvent *ev, const Filter *f)
{
    char line[320];

    if (f->is_json) {
        print_json(ev, f);
    } else {
        tt_event_format(ev, line, sizeof(line));
        puts(line);
    }
}

/* ---- which ones ---- */

/* Prints what fits of one segment. False: enough. */
static bool print_events(const TtSegment *seg, Filter *f)
{
    for (uint32_t i = 0; i < seg->n_events; i++) {
        const TtEvent *ev = &seg->events[i];

        if (ev->pos >= f->to) {
            return false;
        }
        if (ev->pos < f->from || (f->kind_given && !f->kind[ev->kind])) {
            continue;
        }
        if (f->limit == 0) {
            return false;
        }
        f->limit--;
        print_event(ev, f);
        if (ferror(stdout)) {
            return false;
        }
    }
    return true;
}

static bool add_kind(Filter *f, const char *name)
{
    uint64_t number = TT_EV_KIND_MAX + 1;

    f->kind_given = true;
    for (unsigned k = 0; k <= TT_EV_KIND_MAX; k++) {
        const char *known = tt_event_kind_name(k);

        if (known && strcmp(known, name) == 0) {
            number = k;
        }
    }
    if (number <= TT_EV_KIND_MAX ||
        (tool_parse_number(name, &number) && number <= TT_EV_KIND_MAX)) {
        f->kind[number] = true;
        return true;
    }
    return false;
}

static int parse_filter(const ToolArgs *a, Filter *f)
{
    const char *kind;
    unsigned n = 0;
    int result;

    f->is_json = tool_has(a, "--json");
    f->has_data = tool_has(a, "--data");
    if (f->has_data && !f->is_json) {
        return tool_usage(a->command, "--data needs --json");
    }
    result = tool_take_bounds(a, &f->from, &f->to);
    if (result != TOOL_FINE) {
        return result;
    }
    if (!tool_number_option(a, "--limit", UINT64_MAX, &f->limit)) {
        return TOOL_USAGE;
    }
    while ((kind = tool_next_value(a, "--kind", &n))) {
        if (!add_kind(f, kind)) {
            return tool_usage(a->command, "there is no kind of event called "
                              "'%s': tt stats lists those that a run has",
                              kind);
        }
    }
    return TOOL_FINE;
}

static void one_segment(const TtSegment *seg, Filter *f, ToolDialogue *d, bool *more)
{
    if (d) {
        *more = tool_dialogue_add(d, seg, f->from, f->to, &f->limit);
    } else {
        *more = print_events(seg, f);
    }
}

int tool_log(const ToolArgs *a)
{
    g_autoptr(ToolDialogue) dialogue = NULL;
    Filter f = { 0 };
    TtStatus status = TT_OK;
    bool more = true;
    uint64_t n, i;
    TtLogReader *r;
    TtDiag diag;
    int result;

    if (parse_filter(a, &f)) {
        return TOOL_USAGE;
    }
    if (tool_has(a, "--device")) {
        dialogue = tool_dialogue_new(a);
        if (!dialogue) {
            return TOOL_PROBLEM;
        }
    } else if (tool_has(a, "--registers") || tool_has(a, "--timeline")) {
        return tool_usage(a->command, "--registers and --timeline need --device");
    }
    r = tool_open_log(a->operand[0]);
    if (!r) {
        return TOOL_PROBLEM;
    }
    tool_note_beyond(r, f.from);
    n = tt_log_reader_end(r);
    /* The notes of where the device's registers are stand further ahead. */
    i = dialogue ? tt_log_reader_first(r) : tt_log_reader_find(r, f.from);
    /* Events of one position may lie in several segments. */
    while (i > tt_log_reader_first(r) &&
           tt_log_reader_info(r, i - 1)->end_pos >= f.from) {
        i--;
    }
    for (; i < n && more && status == TT_OK; i++) {
        TtSegment *seg;

        status = tt_log_reader_load(r, i, &seg, &diag);
        if (status == TT_OK) {
            one_segment(seg, &f, dialogue, &more);
            tt_segment_unref(seg);
        }
    }
    result = tool_log_status(r);
    if (dialogue && !tool_dialogue_end(dialogue)) {
        result = TOOL_PROBLEM;
    }
    tt_log_reader_free(r);
    fflush(stdout);
    return status == TT_OK ? result : tool_problem(&diag);
}
