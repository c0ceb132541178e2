/* SPDX-License-Identifier: GPL-2.0-or-later */
/* tt console: what the guest had written to its first serial port, line by line. */
#include "tt-tool-console.h"

#include <inttypes.h>
#include <stdio.h>

#define COM1            0x3f8
#define COM1_LCR        0x3fb
#define LCR_DLAB        0x80    /* then COM1 is a divisor's byte */
#define LINE_BYTES      4096

/* ---- lines of bytes ---- */

static void end_line(ToolConsole *c)
{
    g_autofree char *text = g_utf8_make_valid(c->text->str, c->text->len);

    c->line(c->opaque, c->pos, tt_replace_controls(text, '?'));
    g_string_truncate(c->text, 0);
    c->has_begun = false;
}

/* What moves a terminal's cursor or sets a colour. */
static bool is_control(ToolConsole *c, uint8_t byte)
{
    if (c->is_sequence) {
        c->is_sequence = byte < '@' || byte > '~';
        return true;
    }
    if (c->is_escape) {
        c->is_escape = false;
        c->is_sequence = byte == '[';
        return true;
    }
    c->is_escape = byte == 033;
    return byte < ' ' || byte == 0x7f;
}

static void add_byte(ToolConsole *c, uint64_t pos, uint8_t byte)
{
    c->text = c->text ?: g_string_new(NULL);
    if (!c->has_begun) {
        c->has_begun = true;
        c->pos = pos;
    }
    if (byte == '\n') {
        end_line(c);
    } else if (!is_control(c, byte) && c->text->len < c->most) {
        g_string_append_c(c->text, byte);
    }
}

void tool_console_add(ToolConsole *c, const TtEvent *ev)
{
    if (ev->kind != TT_EV_PIO_OUT) {
        return;
    }
    if (ev->addr == COM1_LCR) {
        c->line_control = ev->val;
    } else if (ev->addr == COM1 && !(c->line_control & LCR_DLAB)) {
        add_byte(c, ev->pos, ev->val);
    }
}

void tool_console_end(ToolConsole *c)
{
    if (c->text && c->text->len) {
        end_line(c);
    }
    if (c->text) {
        g_string_free(c->text, true);
        c->text = NULL;
    }
}

/* ---- the command ---- */

typedef struct Line {
    uint64_t pos;
    char *text;
} Line;

typedef struct Show {
    uint64_t from, to, last;    /* @last: lines; UINT64_MAX: all */
    bool is_json;
    GQueue kept;                /* of Line: at most @last */
} Show;

static void free_line(void *opaque)
{
    Line *l = opaque;

    g_free(l->text);
    g_free(l);
}

static void print_line(const Show *s, uint64_t pos, const char *text)
{
    if (s->is_json) {
        tool_json_begin();
        printf("\"position\": %" PRIu64 ", \"text\": ", pos);
        tool_json_string(text);
        puts("}");
    } else {
        printf("%12" PRIu64 "  %s\n", pos, text);
    }
}

static void take_line(void *opaque, uint64_t pos, const char *text)
{
    Show *s = opaque;
    Line *l;

    if (pos < s->from) {
        return;
    }
    if (s->last == UINT64_MAX) {
        print_line(s, pos, text);
        return;
    }
    l = g_new(Line, 1);
    *l = (Line) { pos, g_strdup(text) };
    g_queue_push_tail(&s->kept, l);
    if (g_queue_get_length(&s->kept) > s->last) {
        free_line(g_queue_pop_head(&s->kept));
    }
}

/* False: the rest is not before @to. */
static bool add_segment(ToolConsole *c, const TtSegment *seg, uint64_t to)
{
    for (uint32_t i = 0; i < seg->n_events; i++) {
        if (seg->events[i].pos >= to) {
            return false;
        }
        tool_console_add(c, &seg->events[i]);
    }
    return true;
}

static TtStatus read_log(TtLogReader *r, Show *s, TtDiag *diag)
{
    ToolConsole c = { .line = take_line, .opaque = s, .most = LINE_BYTES };
    TtStatus status = TT_OK;
    bool more = true;

    for (uint64_t i = tt_log_reader_first(r); i < tt_log_reader_end(r) && more; i++) {
        TtSegment *seg;

        status = tt_log_reader_load(r, i, &seg, diag);
        if (status != TT_OK) {
            break;
        }
        more = add_segment(&c, seg, s->to) && !ferror(stdout);
        tt_segment_unref(seg);
    }
    tool_console_end(&c);
    return status;
}

int tool_console(const ToolArgs *a)
{
    Show s = { .is_json = tool_has(a, "--json"), .kept = G_QUEUE_INIT };
    TtStatus status;
    TtLogReader *r;
    TtDiag diag;
    int result;

    result = tool_take_bounds(a, &s.from, &s.to);
    if (result != TOOL_FINE) {
        return result;
    }
    if (!tool_number_option(a, "--last", UINT64_MAX, &s.last)) {
        return TOOL_USAGE;
    }
    r = tool_open_log(a->operand[0]);
    if (!r) {
        return TOOL_PROBLEM;
    }
    tool_note_beyond(r, s.from);
    status = read_log(r, &s, &diag);
    for (GList *l = s.kept.head; l; l = l->next) {
        print_line(&s, ((Line *)l->data)->pos, ((Line *)l->data)->text);
    }
    g_queue_clear_full(&s.kept, free_line);
    result = tool_log_status(r);
    tt_log_reader_free(r);
    fflush(stdout);
    return status == TT_OK ? result : tool_problem(&diag);
}
