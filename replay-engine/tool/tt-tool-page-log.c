/* SPDX-License-Identifier: GPL-2.0-or-later */
/* tt page: the log, added up in bins of positions; the console's lines. */
#include "tt-tool-page.h"
#include "tt-tool-console.h"

static uint64_t *new_bins(const PageLog *p)
{
    return g_new0(uint64_t, p->n_bins);
}

static unsigned bin_of(const PageLog *p, uint64_t pos)
{
    uint64_t bin = pos < p->start ? 0 : (pos - p->start) / p->width;

    return MIN(bin, p->n_bins - 1);
}

/* ---- the console ---- */

static void free_line(void *opaque)
{
    PageLine *l = opaque;

    g_free(l->text);
    g_free(l);
}

static void add_line(void *opaque, uint64_t pos, const char *text)
{
    PageLog *p = opaque;
    PageLine *l = g_new0(PageLine, 1);

    l->pos = pos;
    l->text = g_strdup(text);
    g_ptr_array_add(p->lines, l);
    if (p->lines->len > PAGE_LINES_FIRST + 2 * PAGE_LINES_LAST) {
        g_ptr_array_remove_range(p->lines, PAGE_LINES_FIRST, PAGE_LINES_LAST);
        p->n_lines_left_out += PAGE_LINES_LAST;
    }
}

static void end_console(PageLog *p, ToolConsole *c)
{
    unsigned most = PAGE_LINES_FIRST + PAGE_LINES_LAST;

    tool_console_end(c);
    if (p->lines->len > most) {
        p->n_lines_left_out += p->lines->len - most;
        g_ptr_array_remove_range(p->lines, PAGE_LINES_FIRST, p->lines->len - most);
    }
}

/* ---- events ---- */

static void add_event(PageLog *p, ToolConsole *c, const TtEvent *ev)
{
    unsigned bin = bin_of(p, ev->pos), kind = ev->kind & TT_EV_KIND_MAX;

    if (!p->count[kind]) {
        p->count[kind] = new_bins(p);
    }
    p->count[kind][bin]++;
    if (kind >= TT_EV_PIO_IN && kind <= TT_EV_MMIO_ST) {
        p->io[bin]++;
    } else if (kind == TT_EV_RAM || tt_event_is_named(kind)) {
        p->dma[bin] += tt_event_bytes(ev);
    }
    tool_console_add(c, ev);
}

/* Its stored bytes go to its events in equal parts. */
static void add_segment(PageLog *p, ToolConsole *c, const TtSegment *s)
{
    uint64_t bytes = (uint64_t)s->info.ev_stored + s->info.pl_stored, given = 0;

    for (uint32_t i = 0; i < s->n_events; i++) {
        uint64_t upto = bytes * (i + 1) / s->n_events;

        add_event(p, c, &s->events[i]);
        p->log_bytes[bin_of(p, s->events[i].pos)] += upto - given;
        given = upto;
    }
}

/* Of every second one the times are enough when there are too many. */
static void add_time(PageLog *p, uint64_t pos, uint64_t ns)
{
    PageTime t = { pos, ns }, *all;

    g_array_append_val(p->times, t);
    if (p->times->len <= 2 * PAGE_TIMES) {
        return;
    }
    all = (PageTime *)p->times->data;
    for (unsigned i = 0; i < PAGE_TIMES; i++) {
        all[i] = all[2 * i];
    }
    g_array_set_size(p->times, PAGE_TIMES);
}

void page_log_read(PageLog *p, TtLogReader *r, uint64_t start, uint64_t end)
{
    ToolConsole c = { .line = add_line, .opaque = p, .most = PAGE_LINE_BYTES };
    uint64_t began = 0;

    p->start = start;
    p->end = p->damaged_at = MAX(end, start);
    p->width = (p->end - start) / PAGE_BINS + 1;
    p->n_bins = (p->end - start) / p->width + 1;
    p->io = new_bins(p);
    p->dma = new_bins(p);
    p->log_bytes = new_bins(p);
    p->times = g_array_new(false, false, sizeof(PageTime));
    p->lines = g_ptr_array_new_with_free_func(free_line);
    for (uint64_t i = tt_log_reader_first(r); i < tt_log_reader_end(r); i++) {
        const TtSegInfo *info = tt_log_reader_info(r, i);
        TtSegment *s;

        began = i == tt_log_reader_first(r) ? info->host_ns : began;
        if (tt_log_reader_load(r, i, &s, &p->damage) != TT_OK) {
            p->damaged_at = CLAMP(info->first_pos, p->start, p->end);
            break;
        }
        p->damage.status = TT_OK;
        add_time(p, MAX(info->first_pos, start), info->host_ns - MIN(began, info->host_ns));
        add_segment(p, &c, s);
        tt_segment_unref(s);
    }
    if (p->damage.status == TT_OK && tt_log_reader_damage(r)) {
        p->damage = *tt_log_reader_damage(r);
    }
    end_console(p, &c);
}

void page_log_cleanup(PageLog *p)
{
    for (unsigned k = 0; k <= TT_EV_KIND_MAX; k++) {
        g_free(p->count[k]);
    }
    g_free(p->io);
    g_free(p->dma);
    g_free(p->log_bytes);
    if (p->times) {
        g_array_unref(p->times);
        g_ptr_array_unref(p->lines);
    }
}
