/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tt log --device: what a driver and its device said to each other, in order. Where
 * the registers are, and which DMA and interrupts are the device's, stands in the
 * notes that it made while it was recorded ("device ID: ...").
 */
#include "tt-tool-device.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { BARS = 6, REGISTERS_MAX = 10000 };

typedef struct Bar {
    uint64_t at, size;          /* size 0: unmapped */
    bool is_io;
} Bar;

typedef struct Register {
    unsigned bar;
    uint64_t from, to;          /* to: included */
    char *name;
} Register;

struct ToolDialogue {
    const char *id;
    char *prefix;
    bool is_json, is_plot, is_known;
    Bar bars[BARS];
    GArray *registers;          /* of Register */
    ToolPlot plot;
};

/* ---- registers by name ---- */

/* BAR FROM[-TO] NAME, numbers in hex but for BAR; # begins a comment. */
static bool parse_register(char *line, Register *r)
{
    char *end, *hash = strchr(line, '#');
    g_auto(GStrv) words = NULL;

    if (hash) {
        *hash = '\0';
    }
    *r = (Register) { 0 };
    g_strstrip(line);
    if (!*line) {
        return true;
    }
    words = g_strsplit_set(line, " \t", 3);
    if (g_strv_length(words) != 3 || !g_ascii_isdigit(words[0][0]) || words[0][1] ||
        words[0][0] - '0' >= BARS) {
        return false;
    }
    r->bar = words[0][0] - '0';
    r->from = r->to = g_ascii_strtoull(words[1], &end, 16);
    if (*end == '-') {
        r->to = g_ascii_strtoull(end + 1, &end, 16);
    }
    if (*end || end == words[1] || r->to < r->from) {
        return false;
    }
    r->name = g_strdup(tt_replace_controls(g_strstrip(words[2]), '?'));
    return *r->name;
}

static bool read_registers(ToolDialogue *d, const char *path)
{
    g_autofree char *text = NULL;
    g_auto(GStrv) lines = NULL;
    GError *err = NULL;

    if (!g_file_get_contents(path, &text, NULL, &err)) {
        tool_complain("cannot read the names of registers: %s", err->message);
        g_error_free(err);
        return false;
    }
    lines = g_strsplit(text, "\n", REGISTERS_MAX);
    for (unsigned i = 0; lines[i]; i++) {
        Register r;

        if (!parse_register(lines[i], &r)) {
            g_free(r.name);
            tool_complain("line %u of '%s' does not name a register: a line has the "
                          "number of a BAR, an offset in hex (or FROM-TO), and a "
                          "name", i + 1,
                          path);
            return false;
        }
        if (r.name) {
            g_array_append_val(d->registers, r);
        }
    }
    return true;
}

static const char *name_of(const ToolDialogue *d, unsigned bar, uint64_t offset)
{
    for (unsigned i = 0; i < d->registers->len; i++) {
        const Register *r = &g_array_index(d->registers, Register, i);

        if (r->bar == bar && offset >= r->from && offset <= r->to) {
            return r->name;
        }
    }
    return NULL;
}

/* ---- what is said ---- */

/* In the log, a load from MMIO has its first byte highest. */
static uint64_t value_of(const TtEvent *ev)
{
    return ev->kind == TT_EV_MMIO_LD && ev->size && ev->size <= 8 ?
        __builtin_bswap64(ev->val) >> (64 - 8 * ev->size) : ev->val;
}

static void print_access(const ToolDialogue *d, const TtEvent *ev, unsigned bar,
                         uint64_t offset, bool is_write)
{
    const char *name = name_of(d, bar, offset);

    if (d->is_json) {
        tool_json_begin();
        printf("\"position\": %" PRIu64 ", \"what\": \"%s\", \"bar\": %u, \"offset\": \"0x%"
               PRIx64 "\", \"size\": %u, \"val\": \"0x%" PRIx64 "\"", ev->pos,
               is_write ? "write" : "read", bar, offset, ev->size, value_of(ev));
        if (name) {
            printf(", \"register\": ");
            tool_json_string(name);
        }
        puts("}");
    } else {
        printf("%14" PRIu64 "  driver %s  bar %u +%-6" PRIx64 " %u  %s %" PRIx64
               "%s%s\n", ev->pos, is_write ? "writes" : "reads ", bar, offset,
               ev->size, is_write ? "<-" : "->", value_of(ev), name ? "  " : "",
               name ? name : "");
    }
}

/* False: none of this device's registers. */
static bool add_access(ToolDialogue *d, const TtEvent *ev, bool shown)
{
    bool is_io = ev->kind == TT_EV_PIO_IN || ev->kind == TT_EV_PIO_OUT;
    bool is_write = ev->kind == TT_EV_PIO_OUT || ev->kind == TT_EV_MMIO_ST;

    for (unsigned i = 0; i < BARS; i++) {
        const Bar *b = &d->bars[i];

        if (b->is_io == is_io && ev->addr >= b->at && ev->addr - b->at < b->size) {
            if (shown && d->is_plot) {
                tool_plot_add(&d->plot, ev->pos, is_write ? PLOT_WRITE : PLOT_READ);
            } else if (shown) {
                print_access(d, ev, i, ev->addr - b->at, is_write);
            }
            return true;
        }
    }
    return false;
}

static void move_bar(ToolDialogue *d, const char *text)
{
    Bar b = { 0 };
    char kind[8] = "";
    unsigned i;

    if (sscanf(text, "bar %u at %" SCNx64 " size %" SCNx64 " %7s", &i, &b.at, &b.size,
               kind) == 4 && i < BARS) {
        b.is_io = !strcmp(kind, "io");
        d->bars[i] = b;
    } else if (sscanf(text, "bar %u unmapped", &i) == 1 && i < BARS) {
        d->bars[i] = b;
    }
}

static bool add_note(ToolDialogue *d, const TtEvent *ev, bool shown)
{
    g_autofree char *text = g_strndup(ev->len ? (const char *)ev->data : "", ev->len);
    const char *what;

    if (!g_str_has_prefix(text, d->prefix)) {
        return false;
    }
    d->is_known = true;
    what = tt_replace_controls(text, '?') + strlen(d->prefix);
    if (g_str_has_prefix(what, "bar ")) {
        move_bar(d, what);
    }
    if (!shown) {
        return true;
    }
    if (d->is_plot) {
        if (!g_str_has_prefix(what, "bar ")) {
            tool_plot_add(&d->plot, ev->pos, g_str_has_prefix(what, "interrupt") ?
                          PLOT_INTERRUPT : PLOT_DMA);
        }
    } else if (d->is_json) {
        tool_json_begin();
        printf("\"position\": %" PRIu64 ", \"what\": ", ev->pos);
        tool_json_string(what);
        puts("}");
    } else {
        printf("%14" PRIu64 "  device %s\n", ev->pos, what);
    }
    return true;
}

bool tool_dialogue_add(ToolDialogue *d, const TtSegment *seg, uint64_t from,
                       uint64_t to, uint64_t *limit)
{
    for (uint32_t i = 0; i < seg->n_events; i++) {
        const TtEvent *ev = &seg->events[i];
        bool shown = ev->pos >= from, is_its;

        if (ev->pos >= to || (shown && !*limit)) {
            return false;
        }
        switch (ev->kind) {
        case TT_EV_PIO_IN:
        case TT_EV_PIO_OUT:
        case TT_EV_MMIO_LD:
        case TT_EV_MMIO_ST:
            is_its = add_access(d, ev, shown);
            break;
        case TT_EV_NOTE:
            is_its = add_note(d, ev, shown);
            break;
        default:
            is_its = false;
        }
        if (shown && is_its) {
            --*limit;
        }
        if (ferror(stdout)) {
            return false;
        }
    }
    return true;
}

bool tool_dialogue_end(ToolDialogue *d)
{
    if (!d->is_known) {
        tool_complain("the log has no dialogue of a device '%s': it has those of "
                      "vfio-pci and vfio-user-pci devices, by id or address, such as "
                      "00:03.0",
                      d->id);
        return false;
    }
    if (d->is_plot) {
        tool_plot_print(&d->plot);
    }
    return true;
}

ToolDialogue *tool_dialogue_new(const ToolArgs *a)
{
    const char *registers = tool_value(a, "--registers");
    ToolDialogue *d = g_new0(ToolDialogue, 1);

    d->id = tool_value(a, "--device");
    d->prefix = g_strdup_printf("device %s: ", d->id);
    d->is_json = tool_has(a, "--json");
    d->is_plot = tool_has(a, "--timeline");
    d->registers = g_array_new(false, false, sizeof(Register));
    if (registers && !read_registers(d, registers)) {
        tool_dialogue_free(d);
        return NULL;
    }
    return d;
}

void tool_dialogue_free(ToolDialogue *d)
{
    for (unsigned i = 0; i < d->registers->len; i++) {
        g_free(g_array_index(d->registers, Register, i).name);
    }
    g_array_free(d->registers, true);
    if (d->plot.places) {
        g_array_free(d->plot.places, true);
    }
    g_free(d->prefix);
    g_free(d);
}
