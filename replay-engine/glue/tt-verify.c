/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * -tt replay,verify=...: re-executes the intervals between stored checkpoints and
 * compares what comes of each with the checkpoint at its end: RAM page by page,
 * vCPUs, memory map, outputs. Each interval begins with the stored state, so a
 * wrong one does not spoil those behind it, and several processes can share a run
 * (`tt verify -j`).
 *
 *   start --goto--> at the checkpoint --run--> at the next --compare, restore--+
 *                         ^                                                    |
 *                         +----------------------------------------------------+
 *
 * Where a page differs, positions in between are visited, halving the distance,
 * for the instruction that wrote what should not be there.
 *
 * What was found goes to stdout, a line each, for programs: docs/reference/
 * options-and-commands.rst. Context: the vCPU thread, from travel's callbacks.
 */
#include "tt/engine.h"
#include "tt/pagestore.h"
#include "tt/timeline.h"
#include "tt-points.h"
#include "system/runstate.h"
#include "system/system.h"

#define PAGES_SHOWN 8           /* that differ, of one interval */
#define SHOWN_BYTES 8           /* of each */

typedef struct Differing {
    uint64_t page;
    unsigned offset;            /* of the first byte that differs */
    uint8_t recorded[SHOWN_BYTES], replayed[SHOWN_BYTES];
} Differing;

static struct {
    bool on;
    uint64_t from, to;          /* positions; to UINT64_MAX: the end */
    GArray *points;             /* of TtPoint: stored, in this part of the run */
    unsigned next;              /* with it the present interval ends */
    uint64_t began;
    bool is_wrong, is_unusable; /* any so far */
    /* the present interval's end */
    uint64_t n_pages;
    Differing pages[PAGES_SHOWN];
    /* the search for a write: not at low, at high */
    uint64_t low, high;
} vf;

/* ---- the option ---- */

bool tt_verify_option(const char *text)
{
    vf.on = true;
    return tt_part_parse(text, &vf.from, &vf.to);
}

bool tt_verify_is_on(void)
{
    return vf.on;
}

/* ---- saying it ---- */

static void G_GNUC_PRINTF(1, 2) say(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    printf("tt-verify ");
    vprintf(fmt, ap);
    putchar('\n');
    va_end(ap);
    fflush(stdout);
}

static void wrong(void)
{
    vf.is_wrong = true;
}

static char *hex(const uint8_t bytes[SHOWN_BYTES])
{
    GString *s = g_string_new(NULL);

    for (unsigned i = 0; i < SHOWN_BYTES; i++) {
        g_string_append_printf(s, "%02x", bytes[i]);
    }
    return g_string_free(s, false);
}

static const TtBlock *block_of(uint64_t page)
{
    const TtBlock *found = NULL;

    for (unsigned i = 0; i < tt_memory_n_blocks(); i++) {
        const TtBlock *b = tt_memory_block(i);

        if (b->first_page <= page) {
            found = b;
        }
    }
    return found;
}

static void say_page(const Differing *d)
{
    const TtBlock *b = block_of(d->page);
    g_autofree char *recorded = hex(d->recorded), *replayed = hex(d->replayed);

    say("page %" PRIu64 " block %s offset 0x%" PRIx64 " recorded %s replayed %s",
        d->page, b ? b->name : "?", (d->page - (b ? b->first_page : 0)) *
        TT_PAGE_BYTES + d->offset, recorded, replayed);
}

/* ---- registers ---- */

/* Words of a dump: NAME=VALUE, or what stands between blanks. */
static char **dump(void)
{
    char *text = NULL, **words;
    size_t len = 0;
    FILE *f = open_memstream(&text, &len);

    for (unsigned i = 0; f && i < tt_vcpus_count(); i++) {
        cpu_dump_state(tt_vcpus_at(i), f, CPU_DUMP_FPU);
    }
    if (f) {
        fclose(f);
    }
    words = g_strsplit_set(text ? text : "", " \n", -1);
    free(text);
    return words;
}

static void say_registers(char **replayed, char **recorded)
{
    for (; *replayed && *recorded; replayed++, recorded++) {
        if (strcmp(*replayed, *recorded)) {
            say("register recorded %s replayed %s", *recorded, *replayed);
        }
    }
}

/* ---- comparing ---- */

static void note_page(void *opaque, uint64_t page, const void *bytes)
{
    static const uint8_t zeros[TT_PAGE_BYTES];
    const uint8_t *recorded = bytes ?: zeros;
    const uint8_t *replayed = tt_memory_page(NULL, page);
    Differing *d = &vf.pages[MIN(vf.n_pages, PAGES_SHOWN - 1)];
    unsigned at = 0;

    if (!memcmp(recorded, replayed, TT_PAGE_BYTES)) {
        return;
    }
    if (vf.n_pages++ >= PAGES_SHOWN) {
        return;
    }
    while (recorded[at] == replayed[at]) {
        at++;
    }
    at = MIN(at, TT_PAGE_BYTES - SHOWN_BYTES);
    *d = (Differing) { .page = page, .offset = at };
    memcpy(d->recorded, recorded + at, SHOWN_BYTES);
    memcpy(d->replayed, replayed + at, SHOWN_BYTES);
}

typedef struct Seen {
    uint64_t digest, output_hash, events;
    TtMapState map;
    char **registers;
} Seen;

static void look(Seen *s)
{
    s->digest = tt_vcpus_digest();
    s->output_hash = tt.output_hash;
    s->events = tt.events;
    s->registers = dump();
    tt_memory_map_save(&s->map);
}

static void seen_cleanup(Seen *s)
{
    g_strfreev(s->registers);
    tt_memory_map_free(&s->map);
}

static bool is_same_map(const TtMapState *a, const TtMapState *b)
{
    for (unsigned i = 0; i < ARRAY_SIZE(a->sections); i++) {
        const GByteArray *x = a->sections[i], *y = b->sections[i];

        if (!x != !y || (x && (x->len != y->len ||
                               memcmp(x->data, y->data, x->len)))) {
            return false;
        }
    }
    return a->n_blocks == b->n_blocks;
}

/* @replayed was where @recorded now is, as the checkpoint says. */
static bool compare_states(const Seen *replayed, const Seen *recorded)
{
    bool same = true;

    if (replayed->digest != recorded->digest) {
        say("vcpu differs");
        say_registers(replayed->registers, recorded->registers);
        same = false;
    }
    if (replayed->output_hash != recorded->output_hash) {
        say("outputs differ");
        same = false;
    }
    if (replayed->events != recorded->events) {
        say("events recorded %" PRIu64 " replayed %" PRIu64, recorded->events,
            replayed->events);
        same = false;
    }
    if (!is_same_map(&replayed->map, &recorded->map)) {
        say("map differs");
        same = false;
    }
    return same;
}

/* The VM stands where @p does: is it as @p says? It is, afterwards. False: @p
 * cannot be used. */
static bool compare(const TtPoint *p, bool *same)
{
    Seen replayed, recorded;

    vf.n_pages = 0;
    *same = true;
    if (!tt_points_compare(p->id, note_page, NULL)) {
        return false;
    }
    look(&replayed);
    tt_skip_leave();
    if (tt_points_restore(tt_vcpu(), p->id) != TT_RESTORED) {
        seen_cleanup(&replayed);
        return false;
    }
    tt_skip_restored();
    look(&recorded);
    *same = compare_states(&replayed, &recorded) && !vf.n_pages;
    seen_cleanup(&replayed);
    seen_cleanup(&recorded);
    return true;
}

/* ---- from interval to interval ---- */

static void next_interval(void);
static void reached(void *opaque, uint64_t pos, int reason);

static const TtPoint *next_point(void)
{
    return vf.next < vf.points->len ?
        &g_array_index(vf.points, TtPoint, vf.next) : NULL;
}

static void leave(void)
{
    int code = vf.is_wrong ? 3 : vf.is_unusable ? 1 : 0;

    say("end %d", code);
    qemu_system_shutdown_request_with_code(SHUTDOWN_CAUSE_HOST_QMP_QUIT, code);
}

static void post(bool ok, Error *err)
{
    if (!ok) {
        say("failed %s", error_get_pretty(err));
        error_free(err);
        vf.is_unusable = true;
        leave();
    }
}

static void run_on(void)
{
    const TtPoint *p = next_point();
    Error *err = NULL;
    bool ok;

    vf.began = tt.pos;
    ok = tt_travel_run(p ? p->pos : INT64_MAX, reached, NULL, &err);
    post(ok, err);
}

static void next_interval(void)
{
    bool was_last = !next_point();

    vf.next++;
    if (was_last || (!next_point() && vf.to != UINT64_MAX)) {
        leave();
    } else {
        run_on();
    }
}

/* ---- the write that should not be ---- */

static void visited(void *opaque, uint64_t pos, int reason);

static void visit(uint64_t pos)
{
    Error *err = NULL;
    bool ok = tt_travel_goto(pos, visited, NULL, &err);

    post(ok, err);
}

static void back_to_the_end(void *opaque, uint64_t pos, int reason)
{
    next_interval();
}

static void end_search(void)
{
    const TtPoint *p = next_point();
    Error *err = NULL;

    post(tt_travel_goto(p->pos, back_to_the_end, NULL, &err), err);
}

static bool has_replayed_bytes(void)
{
    const Differing *d = &vf.pages[0];
    const uint8_t *now = tt_memory_page(NULL, d->page);

    return !memcmp(now + d->offset, d->replayed, SHOWN_BYTES);
}

static void say_write(uint64_t pos)
{
    CPUState *cpu = tt_vcpu();

    say("write page %" PRIu64 " position %" PRIu64 " pc 0x%" PRIx64,
        vf.pages[0].page, pos, (uint64_t)cpu->cc->get_pc(cpu));
    end_search();
}

static void visited(void *opaque, uint64_t pos, int reason)
{
    if (reason != TT_STOP_TARGET) {
        say("search ended %s at %" PRIu64, tt_stop_name(reason), pos);
        end_search();
        return;
    }
    if (vf.high == UINT64_MAX) {        /* the first visit: at the beginning */
        if (has_replayed_bytes()) {
            say("nowrite page %" PRIu64, vf.pages[0].page);
            end_search();
            return;
        }
        vf.high = next_point()->pos;
    } else if (vf.low + 1 == vf.high) {
        say_write(pos);
        return;
    } else if (has_replayed_bytes()) {
        vf.high = MAX(MIN(pos, vf.high), vf.low + 1);
    } else {
        vf.low = MIN(pos, vf.high - 1);
    }
    visit(vf.low + 1 == vf.high ? vf.low : vf.low + (vf.high - vf.low) / 2);
}

static void begin_search(void)
{
    vf.low = vf.began;
    vf.high = UINT64_MAX;
    visit(vf.began);
}

/* ---- the end of an interval ---- */

static void at_checkpoint(const TtPoint *p)
{
    bool same;

    if (!compare(p, &same)) {
        say("unusable %u position %" PRIu64, p->id, p->pos);
        vf.is_unusable = true;
        next_interval();
        return;
    }
    for (unsigned i = 0; i < MIN(vf.n_pages, PAGES_SHOWN); i++) {
        say_page(&vf.pages[i]);
    }
    if (vf.n_pages) {
        say("pages %" PRIu64, vf.n_pages);
    }
    say("interval %" PRIu64 " %" PRIu64 " %s", vf.began, p->pos,
        same ? "equal" : "differs");
    if (!same) {
        wrong();
    }
    if (vf.n_pages && vf.began < p->pos) {
        begin_search();
    } else {
        next_interval();
    }
}

/* The replay of the interval went wrong on its way. */
static void in_trouble(int reason)
{
    CPUState *cpu = tt_vcpu();
    const TtPoint *p = next_point();
    bool restored = false;

    say("%s %" PRIu64 " pc 0x%" PRIx64 " after %" PRIu64 " %s",
        tt_stop_name(reason), tt.pos, (uint64_t)cpu->cc->get_pc(cpu),
        MAX(tt_replay_last_equal(), vf.began),
        tt.divergence ?: "for no reason given");
    say("interval %" PRIu64 " %" PRIu64 " %s", vf.began,
        p ? p->pos : tt_replay_end(), tt_stop_name(reason));
    wrong();
    if (p) {
        tt_skip_leave();
        restored = tt_points_restore(cpu, p->id) == TT_RESTORED;
        if (restored) {
            tt_skip_restored();
        } else {
            say("unusable %u position %" PRIu64, p->id, p->pos);
        }
    }
    if (restored) {
        next_interval();
    } else {
        leave();
    }
}

static void reached(void *opaque, uint64_t pos, int reason)
{
    const TtPoint *p = next_point();

    if (reason == TT_STOP_DIVERGED || reason == TT_STOP_DAMAGED) {
        in_trouble(reason);
    } else if (reason == TT_STOP_INTERRUPTED) {
        say("interrupted %" PRIu64, pos);
        vf.is_unusable = true;
        leave();
    } else if (p && pos == p->pos) {
        at_checkpoint(p);
    } else if (p) {
        say("missed %u position %" PRIu64 " end %" PRIu64, p->id, p->pos, pos);
        wrong();
        leave();
    } else {
        say("interval %" PRIu64 " %" PRIu64 " equal", vf.began, pos);
        next_interval();
    }
}

/* ---- start ---- */

/* Checkpoints of the part that is to be verified, in order. */
static void choose_points(void)
{
    g_autoptr(GArray) all = tt_points_list();

    vf.points = g_array_new(false, false, sizeof(TtPoint));
    for (unsigned i = 0; i < all->len; i++) {
        TtPoint *p = &g_array_index(all, TtPoint, i);

        if (p->stored && p->pos >= vf.from && p->pos <= vf.to) {
            g_array_append_val(vf.points, *p);
        }
    }
}

static void at_start(void *opaque, uint64_t pos, int reason)
{
    const TtPoint *p = next_point();

    if (reason != TT_STOP_TARGET) {
        in_trouble(reason);
        return;
    }
    if (p && p->pos == pos) {
        vf.began = pos;
        if (!pos && !tt_points_compare_all(p->id, note_page, NULL)) {
            say("unusable %u position 0", p->id);
            vf.is_unusable = true;
        } else if (!pos && vf.n_pages) {
            say_page(&vf.pages[0]);
            say("pages %" PRIu64, vf.n_pages);
            say("interval 0 0 differs");
            wrong();
        }
        next_interval();
    } else {
        run_on();
    }
}

void tt_verify_begin(void)
{
    Error *err = NULL;
    bool ok;

    vf.from = MAX(vf.from, tt_replay_first());
    choose_points();
    ok = tt_travel_goto(vf.from, at_start, NULL, &err);
    post(ok, err);
}
