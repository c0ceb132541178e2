/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Looking for a place in code that TCG runs, from the branch before it on if that is
 * known: a breakpoint at its address ends blocks there; each time the vCPU comes by,
 * registers are compared, then the rest, then the pages that the recorded machine had
 * written since the place before. The first that fits is the place: the state is the
 * same, so everything that follows is the same.
 */
#include "qemu/osdep.h"
#include "tt-convert-parts-int.h"
#include "accel-tt/x86/tt-landmark-x86.h"
#include "hw-tt/memory/tt-memory.h"
#include "log/tt-landmark.h"
#include "log/tt-sched.h"
#include "pages/tt-page.h"
#include "replay/tt-replay-exact.h"
#include "replay/tt-replay-log.h"
#include "tt/hooks.h"
#include "exec/breakpoint.h"
#include "qemu/bitmap.h"

#define NEAREST_MAX 1000
#define PAGES_MAX   (UINT32_MAX / TT_LANDMARK_PAGE - TT_LANDMARK_PAGES_MAX)
TtConvertCounts tt_convert_counts;
bool tt_hunting;                    /* from the first breakpoint on */

static struct {
    TtLandmark want;
    GByteArray *data;               /* a copy of the event's: want leads into it */
    GByteArray *more;               /* pages of the events before it */
    TtCursor first_more;            /* the first of them, or of what else says more */
    bool has_more;
    CPUBreakpoint *bp;              /* NULL: the branch before it is still to come */
    uint32_t last_bad;              /* the page that differed last time: it is the
                                       most telling one */
    uint64_t candidates, same_registers;
    unsigned nearest;
    bool is_on;
    uint64_t matches[TT_X86_SAME + 1];
    char *difference;               /* of the nearest candidate, or of the system
                                       registers the last time */
} hunt;

/* ---- page tables ---- */

static unsigned long *tables;       /* a bit for each page */
static uint64_t n_tables;           /* bits that there are */
bool tt_notes_tables;

void tt_note_table(void *entry)
{
    uint64_t offset = 0, page;
    uint32_t block = entry ? tt_memory_locate(entry, &offset) : UINT32_MAX;

    if (block == UINT32_MAX) {
        return;
    }
    page = tt_memory_block(block)->first_page + offset / TT_PAGE_BYTES;
    if (page >= n_tables) {
        uint64_t n = tt_memory_n_pages();

        tables = g_realloc(tables, BITS_TO_LONGS(n) * sizeof(long));
        memset(tables + BITS_TO_LONGS(n_tables), 0,
               (BITS_TO_LONGS(n) - BITS_TO_LONGS(n_tables)) * sizeof(long));
        n_tables = n;
    }
    set_bit(page, tables);
}

TtBytes tt_convert_tables(void)
{
    return (TtBytes) { (uint8_t *)tables, BITS_TO_LONGS(n_tables) * sizeof(long) };
}

void tt_convert_set_tables(TtBytes bits)
{
    n_tables = MIN((uint64_t)bits.len / sizeof(long) * BITS_PER_LONG,
                   tt_memory_n_pages());
    tables = g_realloc(tables, BITS_TO_LONGS(n_tables) * sizeof(long));
    memcpy(tables, bits.data, BITS_TO_LONGS(n_tables) * sizeof(long));
}

bool tt_convert_is_table(uint64_t page)
{
    return page < n_tables && test_bit(page, tables);
}

/* ---- is it here? ---- */

static uint32_t n_more(void)
{
    return hunt.more ? hunt.more->len / TT_LANDMARK_PAGE : 0;
}

static uint32_t n_pages(const TtLandmark *p)
{
    return n_more() + p->n_pages;
}

static TtLandmarkPage page_of(const TtLandmark *p, uint32_t i)
{
    TtLandmark more = { .n_pages = n_more() };

    if (i >= more.n_pages) {
        return tt_landmark_page(p, i - more.n_pages);
    }
    more.pages = hunt.more->data;
    return tt_landmark_page(&more, i);
}

static bool is_page_equal(const TtLandmark *p, uint32_t i)
{
    TtLandmarkPage want = page_of(p, i);

    return want.page < tt_memory_n_pages() &&
        tt_landmark_page_is(&want, tt_memory_page(NULL, want.page),
                            tt_convert_is_table(want.page));
}

static bool is_ram_equal(const TtLandmark *p)
{
    if (p->n_pages == TT_LANDMARK_WHOLE_RAM) {
        return tt_memory_digest() == p->ram_digest;
    }
    if (hunt.last_bad < n_pages(p) && !is_page_equal(p, hunt.last_bad)) {
        return false;
    }
    for (uint32_t i = 0; i < n_pages(p); i++) {
        if (!is_page_equal(p, i)) {
            hunt.last_bad = i;
            return false;
        }
    }
    return true;
}

/* For the report: the candidate that had most in common with it. */
static void note_nearest(CPUState *cpu, const TtLandmark *p)
{
    unsigned n = tt_x86_equal_registers(cpu, p);

    if (n > hunt.nearest) {
        hunt.nearest = n;
        g_free(hunt.difference);
        hunt.difference = tt_x86_register_difference(cpu, p);
    }
}

/* Elsewhere it is no candidate: it may be at the breakpoint of the search for a
 * repetition, or out of guest code for another reason. */
static bool is_at(CPUState *cpu, const TtLandmark *p)
{
    TtX86Match match;

    if (cpu->cc->get_pc(cpu) != p->pc ||
        tt_convert_branches_near() != TT_CONVERT_HERE) {
        return false;
    }
    match = tt_x86_match_place(cpu, p);
    hunt.candidates++;
    hunt.matches[match]++;
    if (match == TT_X86_OTHER && hunt.candidates <= NEAREST_MAX) {
        note_nearest(cpu, p);
    }
    if (match == TT_X86_OTHER_SYSTEM) {
        g_free(hunt.difference);
        hunt.difference = tt_x86_system_difference(cpu, p);
    }
    if (match != TT_X86_SAME) {
        return false;
    }
    hunt.same_registers++;
    return is_ram_equal(p);
}

static void report_repetition(void)
{
    g_autofree char *why = hunt.is_on ? tt_convert_hunt_text() : NULL;
    const TtEvent *ev = tt_sched_peek(tt_replay_sched());
    char text[160];

    if (!ev) {
        tt_replay_report("the guest is in an endless loop and never reaches the end of "
                         "the log");
        return;
    }
    tt_event_format(ev, text, sizeof(text));
    tt_replay_report("the guest is in an endless loop and never reaches what was "
                     "recorded next, '%s'%s%s", text, why ? ": " : "", why ?: "");
}

bool tt_hunt_stops(CPUState *cpu)
{
    if (hunt.is_on && is_at(cpu, &hunt.want)) {
        return true;
    }
    if (!tt_convert_repeats(cpu)) {
        return false;
    }
    report_repetition();
    return true;
}

bool tt_convert_is_here(CPUState *cpu, const TtEvent *ev)
{
    TtLandmark p;

    hunt.last_bad = 0;
    return tt_landmark_decode(&p, ev->data, ev->len) && is_at(cpu, &p);
}

static void note_more(void)
{
    if (!hunt.has_more) {
        hunt.has_more = true;
        hunt.first_more = tt_sched_tell(tt_replay_sched());
    }
}

bool tt_convert_more_pages(const TtEvent *ev)
{
    uint64_t n = n_more() + (uint64_t)ev->len / TT_LANDMARK_PAGE;

    if (ev->len % TT_LANDMARK_PAGE || n > MIN(tt_memory_n_pages(), PAGES_MAX)) {
        return false;
    }
    note_more();
    hunt.more = hunt.more ?: g_byte_array_new();
    g_byte_array_append(hunt.more, ev->data, ev->len);
    return true;
}

void tt_convert_more_branches(const TtEvent *ev)
{
    note_more();
    if (!(tt_omit & TT_OMIT_BRANCH_COUNTS)) {
        tt_convert_branches_want(ev->val);
    }
}

bool tt_convert_has_more(void)
{
    return hunt.has_more;
}

TtCursor tt_convert_cursor(void)
{
    return hunt.has_more ? hunt.first_more : tt_sched_tell(tt_replay_sched());
}

bool tt_convert_hunt_goes_on(CPUState *cpu)
{
    TtConvertNear near = tt_convert_branches_near();

    if (!hunt.bp && near == TT_CONVERT_HERE) {
        cpu_breakpoint_insert(cpu, hunt.want.pc, BP_GDB, &hunt.bp);
        tt_hunting = true;
    }
    tt_convert_branches_hunt(cpu);
    return near != TT_CONVERT_BEHIND;
}

bool tt_convert_hunt(CPUState *cpu, const TtEvent *ev)
{
    hunt.data = hunt.data ?: g_byte_array_new();
    g_byte_array_set_size(hunt.data, 0);
    g_byte_array_append(hunt.data, ev->data, ev->len);
    if (!tt_landmark_decode(&hunt.want, hunt.data->data, hunt.data->len)) {
        return false;
    }
    hunt.candidates = hunt.same_registers = hunt.nearest = 0;
    memset(hunt.matches, 0, sizeof(hunt.matches));
    g_free(hunt.difference);
    hunt.difference = NULL;
    hunt.is_on = true;
    return true;
}

void tt_convert_hunt_ends(CPUState *cpu)
{
    if (hunt.more) {
        g_byte_array_set_size(hunt.more, 0);
    }
    hunt.has_more = false;
    tt_convert_branches_end(cpu);
    if (!hunt.is_on) {
        return;
    }
    if (hunt.bp) {
        cpu_breakpoint_remove_by_ref(cpu, hunt.bp);
        hunt.bp = NULL;
    }
    hunt.is_on = false;
    tt_convert_counts.candidates += hunt.candidates;
    tt_convert_counts.same_registers += hunt.same_registers;
}

bool tt_convert_is_hunting(void)
{
    return hunt.is_on;
}

char *tt_convert_hunt_text(void)
{
    GString *s = g_string_new(NULL);
    g_autofree char *branches = tt_convert_branches_text();

    g_string_printf(s, "0x%" PRIx64 " was passed %" PRIu64 " times, %" PRIu64
                    " times with the recorded registers (system registers differed %"
                    PRIu64 " times, x87 and SSE %" PRIu64 " times)%s%s", hunt.want.pc,
                    hunt.candidates, hunt.candidates - hunt.matches[TT_X86_OTHER],
                    hunt.matches[TT_X86_OTHER_SYSTEM], hunt.matches[TT_X86_OTHER_FPU],
                    hunt.difference ? ": " : "", hunt.difference ?: "");
    if (hunt.same_registers && hunt.want.n_pages == TT_LANDMARK_WHOLE_RAM) {
        g_string_append(s, "; then RAM differed");
    } else if (hunt.same_registers && hunt.last_bad < n_pages(&hunt.want)) {
        uint32_t page = page_of(&hunt.want, hunt.last_bad).page;

        g_string_append_printf(s, "; then page %" PRIu32 " differed, of %" PRIu32
                               " written ones%s", page, n_pages(&hunt.want),
                               tt_convert_is_table(page) ? ", a page table" : "");
    }
    g_string_append(s, branches);
    return g_string_free(s, false);
}
