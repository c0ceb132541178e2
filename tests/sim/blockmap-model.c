/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Block map against a flat array with versions: see blockmap-model.h.
 */
#include "blockmap-model.h"
#include "blockmap-damage.h"
#include "blockmap-file.h"
#include "block-tt/tt-blockmap.h"

#include <glib.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SECTOR          512u
#define BITS            12
#define PER_CLUSTER     ((1u << BITS) / SECTOR)
/* The last cluster is short. */
#define N_SECTORS       (20 * PER_CLUSTER + 3)
#define VERSIONS_MAX    9
#define STATES_MAX      40
#define BASE            0x80000000u     /* what the backing file has: this | sector */

/* Contents by sectors; shared by the states that have it. */
typedef struct Content {
    TtVersionId id, parent;
    uint32_t sector[N_SECTORS];
} Content;

typedef struct State {
    Content *version[VERSIONS_MAX];
    unsigned n;
    Content head;                       /* its id: 0 */
    unsigned base;                      /* number in the name of the backing file */
} State;

typedef struct Model {
    TtIo *file;
    TtBlockMap *map;
    State now;
    State *asked;                       /* since the last good commit, that one first */
    unsigned n_asked;
    GArray *late[N_SECTORS];            /* values written in place since then */
    GArray *was[N_SECTORS];             /* and what was there before */
    /* J3: sectors of new clusters that were written as a whole. Of an unordered commit,
     * which writes its record before a sync: those that are undefined after a cut of
     * power, and what may still be in those that were written in place. */
    bool whole[N_SECTORS], undefined[N_SECTORS];
    GArray *older[N_SECTORS];
    TtBlockPlan plan;
    bool commit_runs, has_backing;
    bool wrote_late;                    /* in place, since the commit began */
    bool is_said_twice;                 /* what follows the last commit was written */
    unsigned step;
    uint32_t stamp;
    const uint8_t *in, *end;
    uint64_t rng, left;
    BlockmapModelStats *stats;
    const char *doing;
} Model;

/* ---- choices ---- */

static uint32_t random32(Model *m)
{
    m->rng ^= m->rng << 13;
    m->rng ^= m->rng >> 7;
    m->rng ^= m->rng << 17;
    return m->rng >> 16;
}

static uint8_t next_byte(Model *m)
{
    if (m->rng) {
        return random32(m);
    }
    return m->in < m->end ? *m->in++ : 0;
}

static uint32_t below(Model *m, uint32_t n)
{
    uint32_t v = next_byte(m);

    return n > 256 ? (v << 8 | next_byte(m)) % n : n ? v % n : 0;
}

G_GNUC_NORETURN static void differs(const Model *m, const char *what, uint64_t at)
{
    fprintf(stderr, "operation %" PRIu64 ", %s: %s (%" PRIu64 ")\n", m->stats->ops,
            m->doing, what, at);
    abort();
}

/* ---- the file ---- */

static void fill(uint8_t *to, const uint32_t *sector, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        for (unsigned k = 0; k < SECTOR; k += 4) {
            memcpy(to + i * SECTOR + k, &sector[i], 4);
        }
    }
}

static uint32_t base_of(const Model *m, unsigned sector)
{
    return m->has_backing ? BASE | sector : 0;
}

/* What sector @s of a run holds; all its bytes must say the same. */
static uint32_t sector_at(Model *m, const TtBlockRun *run, unsigned s, unsigned first)
{
    uint32_t word[SECTOR / 4];
    size_t got;

    if (run->kind != TT_BLOCK_HOST) {
        return run->kind == TT_BLOCK_ZERO ? 0 : base_of(m, s);
    }
    m->file->ops->read_at(m->file, run->host_offset + (s - first) * SECTOR, word, SECTOR,
                          &got, NULL);
    if (got < SECTOR) {
        memset((uint8_t *)word + got, 0, SECTOR - got);
    }
    for (unsigned i = 1; i < SECTOR / 4; i++) {
        if (word[i] != word[0]) {
            return UINT32_MAX;
        }
    }
    return word[0];
}

/* All sectors; @view NULL: of the head. */
static void read_all(Model *m, const TtBlockView *view, uint32_t *sector)
{
    unsigned s = 0;

    while (s < N_SECTORS) {
        uint64_t at = (uint64_t)s * SECTOR, len = (uint64_t)N_SECTORS * SECTOR - at;
        unsigned first = s;
        TtBlockRun run;

        if (view) {
            tt_blockmap_view_lookup(view, at, len, &run);
        } else {
            tt_blockmap_lookup(m->map, at, len, &run);
        }
        if (run.len == 0 || run.len > len || run.len % SECTOR) {
            differs(m, "a run of a wrong length", run.len);
        }
        for (; s < first + run.len / SECTOR; s++) {
            sector[s] = sector_at(m, &run, s, first);
        }
    }
}

/* ---- states ---- */

static void copy_state(State *to, const State *from)
{
    *to = *from;
    for (unsigned i = 0; i < to->n; i++) {
        g_rc_box_acquire(to->version[i]);
    }
}

static void drop_state(State *st)
{
    for (unsigned i = 0; i < st->n; i++) {
        g_rc_box_release(st->version[i]);
    }
    st->n = 0;
}

static void ask(Model *m)
{
    if (m->n_asked == STATES_MAX) {
        differs(m, "the model has no room", 0);
    }
    copy_state(&m->asked[m->n_asked++], &m->now);
}

/* The last state asked for is on the disk: the ones before are history. */
static void settle(Model *m)
{
    for (unsigned i = 0; i + 1 < m->n_asked; i++) {
        drop_state(&m->asked[i]);
    }
    m->asked[0] = m->asked[m->n_asked - 1];
    m->n_asked = 1;
}

static void put_sector(Model *m, unsigned s, uint32_t value)
{
    m->now.head.sector[s] = value;
}

/* Written in place: any state whose map names that place may have it. */
static void put_in_place(Model *m, unsigned s, uint32_t value)
{
    g_array_append_val(m->was[s], m->now.head.sector[s]);
    put_sector(m, s, value);
    g_array_append_val(m->late[s], value);
    m->wrote_late = true;
}

static void forget_unordered(Model *m)
{
    memset(m->undefined, 0, sizeof(m->undefined));
    for (unsigned s = 0; s < N_SECTORS; s++) {
        g_array_set_size(m->older[s], 0);
    }
}

/* A commit begins. What comes later is no business of its record. */
static void note_unordered(Model *m, bool is_unordered)
{
    for (unsigned s = 0; s < N_SECTORS; s++) {
        if (is_unordered) {
            m->undefined[s] |= m->whole[s];
            g_array_append_vals(m->older[s], m->was[s]->data, m->was[s]->len);
        }
        m->whole[s] = false;
        g_array_set_size(m->was[s], 0);
    }
    m->stats->unordered += is_unordered;
}

static void clear_late(Model *m)
{
    for (unsigned s = 0; s < N_SECTORS; s++) {
        g_array_set_size(m->late[s], 0);
    }
}

/* ---- comparing ---- */

static bool is_in(const GArray *values, uint32_t value)
{
    for (guint i = 0; i < values->len; i++) {
        if (g_array_index(values, uint32_t, i) == value) {
            return true;
        }
    }
    return false;
}

static bool may_hold(const Model *m, unsigned s, uint32_t value)
{
    return m->undefined[s] || is_in(m->late[s], value) || is_in(m->older[s], value);
}

/* Is the map in state @st? @may_be_late: sectors of the head may be newer. */
static const char *compare(Model *m, const State *st, bool may_be_late)
{
    static uint32_t sector[N_SECTORS];
    TtVersionInfo info;
    TtDiskInfo all;

    tt_blockmap_info(m->map, &all);
    if (all.n_versions != st->n || all.parent != st->head.parent) {
        return "other versions, or another parent of the head";
    }
    if (all.backing && atoi(all.backing + strlen("base")) != (int)st->base) {
        return "another backing file";
    }
    for (unsigned i = 0; i < st->n; i++) {
        const Content *v = st->version[i];
        TtBlockView *view = tt_blockmap_view_open(m->map, v->id);
        bool same;

        if (!view || !tt_blockmap_version_info(m->map, v->id, &info) ||
            info.parent != v->parent || info.tag != v->id * 3u ||
            atoi(info.name + 1) != (int)v->id) {
            tt_blockmap_view_close(m->map, view);
            return "a version is not there, or has another parent, name or tag";
        }
        read_all(m, view, sector);
        tt_blockmap_view_close(m->map, view);
        same = memcmp(sector, v->sector, sizeof(sector)) == 0;
        if (!same) {
            return "a version has other contents";
        }
    }
    read_all(m, NULL, sector);
    for (unsigned s = 0; s < N_SECTORS; s++) {
        if (sector[s] != st->head.sector[s] &&
            !(may_be_late && may_hold(m, s, sector[s]))) {
            return "the head has other contents";
        }
    }
    return NULL;
}

static void check_now(Model *m)
{
    const char *what = compare(m, &m->now, false);
    TtBlockCheck check;

    if (what) {
        differs(m, what, 0);
    }
    if (tt_blockmap_check(m->map, &check, NULL) != TT_OK || check.errors) {
        differs(m, check.text, check.errors);
    }
}

static void open_map(Model *m)
{
    TtDiag diag;

    if (tt_blockmap_open(m->file, &m->map, &diag) != TT_OK) {
        differs(m, diag.text, 0);
    }
    if (tt_blockmap_damage(m->map)) {
        differs(m, tt_blockmap_damage(m->map), 0);
    }
    tt_blockmap_set_anew_bytes(m->map, 20000);
}

/* ---- commits ---- */

static bool step_fails(Model *m)
{
    return m->step > 0 && below(m, 12) == 0;
}

static void give_back_space(Model *m)
{
    uint64_t at, len;

    while (tt_blockmap_next_freed(m->map, &at, &len)) {
        cut_file_punch(m->file, at, len);
        tt_blockmap_release(m->map, at, len);
    }
}

/* What is written when all steps are done: nothing of it may be needed. */
static void after_commit(Model *m, bool may_fail)
{
    const TtBlockStep *s = &m->plan.after;

    if (!s->len) {
        return;
    }
    m->is_said_twice = !may_fail || below(m, 12);
    cut_file_write_part(m->file, s->offset, s->data, s->len, m->is_said_twice ? s->len :
                        (uint64_t)s->len * below(m, 257) / 256);
}

static void end_commit(Model *m, bool ok)
{
    if (ok || below(m, 4) == 0) {
        tt_blockmap_commit_end(m->map, ok);
    } else {
        m->stats->stopped_early += tt_blockmap_commit_stop(m->map, &m->plan, m->step);
    }
    m->commit_runs = false;
    m->stats->commits += ok;
    m->stats->failed += !ok;
    if (ok) {
        /* Late values that were written while it ran stay. */
        settle(m);
        forget_unordered(m);
        if (!m->wrote_late) {
            clear_late(m);
        }
        give_back_space(m);
    }
}

static void begin_commit(Model *m)
{
    bool is_anew;
    TtDiag diag;

    if (m->commit_runs) {
        return;
    }
    if (tt_blockmap_commit_begin(m->map, &m->plan, &diag) != TT_OK) {
        differs(m, diag.text, 0);
    }
    m->commit_runs = true;
    m->wrote_late = false;
    m->step = 0;
    is_anew = m->plan.n > 1 && m->plan.step[m->plan.n - 2].offset < 2 * 4096;
    m->stats->anew += is_anew;
    note_unordered(m, !is_anew && m->plan.step[0].kind == TT_BLOCK_WRITE);
    ask(m);
}

/* One step. It may fail, half done. */
static void step_commit(Model *m, bool may_fail)
{
    const TtBlockStep *s = &m->plan.step[m->step];

    if (!m->commit_runs) {
        return;
    }
    if (m->step == m->plan.n) {
        after_commit(m, may_fail);
        end_commit(m, true);
    } else if (may_fail && m->n_asked < STATES_MAX - 2 && step_fails(m)) {
        if (s->kind == TT_BLOCK_WRITE) {
            cut_file_write_part(m->file, s->offset, s->data, s->len,
                                (uint64_t)s->len * below(m, 257) / 256);
        }
        end_commit(m, false);
    } else {
        tt_block_step_io(s, m->file, NULL);
        m->step++;
    }
}

static void finish_commit(Model *m, bool may_fail)
{
    while (m->commit_runs) {
        step_commit(m, may_fail);
    }
}

static void commit(Model *m, bool may_fail)
{
    finish_commit(m, may_fail);
    begin_commit(m);
    finish_commit(m, may_fail);
}

/* ---- what a guest does ---- */

static void some_range(Model *m, unsigned *s, unsigned *n)
{
    *s = below(m, N_SECTORS);
    *n = 1 + below(m, next_byte(m) % 4 ? 12 : 60);
    *n = MIN(*n, N_SECTORS - *s);
}

static void do_delete(Model *m);
static void do_version(Model *m);

static void write_sectors(Model *m, unsigned s, unsigned n, bool zeros, bool fails)
{
    static uint8_t bytes[(N_SECTORS + 2 * PER_CLUSTER) * SECTOR];
    static uint32_t value[N_SECTORS + 2 * PER_CLUSTER];

    while (n) {
        TtBlockWrite w;
        TtDiag diag;
        unsigned before, got, after;

        if (tt_blockmap_write_begin(m->map, (uint64_t)s * SECTOR, (uint64_t)n * SECTOR,
                                    &w, &diag) != TT_OK) {
            differs(m, diag.text, 0);
        }
        before = w.fill_before / SECTOR;
        got = w.len / SECTOR;
        after = w.fill_after / SECTOR;
        if (got == 0 || got > n || s + got + after > N_SECTORS) {
            differs(m, "a write of a wrong length", w.len);
        }
        if (next_byte(m) % 16 == 0) {
            do_delete(m);               /* nobody waits for writes under way */
        }
        memcpy(value, &m->now.head.sector[s - before],
               (before + got + after) * sizeof(*value));
        for (unsigned i = 0; i < got; i++) {
            value[before + i] = zeros ? 0 : ++m->stamp & ~BASE;
        }
        fill(bytes, value, before + got + after);
        if (fails && w.is_new) {
            cut_file_write_part(m->file, w.host_offset - w.fill_before, bytes,
                                (before + got + after) * SECTOR,
                                below(m, before + got + after) * SECTOR);
        } else {
            m->file->ops->write_at(m->file, w.host_offset - w.fill_before, bytes,
                                   (before + got + after) * SECTOR, NULL);
        }
        tt_blockmap_write_end(m->map, &w, !(fails && w.is_new));
        for (unsigned i = 0; i < got && !(fails && w.is_new); i++) {
            (w.is_new ? put_sector : put_in_place)(m, s + i, value[before + i]);
            m->whole[s + i] |= w.is_new && !before && !after;
        }
        s += got;
        n -= got;
    }
}

static void do_write(Model *m)
{
    unsigned s, n;

    some_range(m, &s, &n);
    m->stats->writes++;
    write_sectors(m, s, n, false, next_byte(m) % 16 == 0);
}

/* Whole clusters, and nothing else since the last commit: often an unordered one. */
static void do_whole(Model *m)
{
    commit(m, true);
    for (unsigned n = 1 + below(m, 3); n; n--) {
        unsigned first = below(m, N_SECTORS / PER_CLUSTER);
        unsigned count = 1 + below(m, 4);
        unsigned s = first * PER_CLUSTER;

        m->stats->writes++;
        write_sectors(m, s, MIN(count * PER_CLUSTER, N_SECTORS - s), false, false);
        if (below(m, 8) == 0) {
            do_version(m);
        }
    }
    begin_commit(m);
}

static void do_zero(Model *m)
{
    uint64_t before, after;
    unsigned s, n, first, end;

    some_range(m, &s, &n);
    if (tt_blockmap_zero(m->map, (uint64_t)s * SECTOR, (uint64_t)n * SECTOR, false,
                         &before, &after, NULL) != TT_OK) {
        differs(m, "cannot write zeros", 0);
    }
    first = s + before / SECTOR;
    end = s + n - after / SECTOR;
    for (unsigned i = first; i < end; i++) {
        put_sector(m, i, 0);
    }
    if (first > s) {
        write_sectors(m, s, first - s, true, false);
    }
    if (end < s + n) {
        write_sectors(m, end, s + n - end, true, false);
    }
}

static void do_discard(Model *m)
{
    unsigned s, n;

    some_range(m, &s, &n);
    for (unsigned c = (s + PER_CLUSTER - 1) / PER_CLUSTER; ; c++) {
        unsigned end = MIN((c + 1) * PER_CLUSTER, N_SECTORS);
        TtBlockRun run;

        if (end > s + n || c * PER_CLUSTER >= N_SECTORS) {
            break;
        }
        tt_blockmap_lookup(m->map, (uint64_t)c * PER_CLUSTER * SECTOR, SECTOR, &run);
        for (unsigned i = c * PER_CLUSTER; i < end && run.kind == TT_BLOCK_HOST; i++) {
            put_sector(m, i, 0);
        }
    }
    tt_blockmap_discard(m->map, (uint64_t)s * SECTOR, (uint64_t)n * SECTOR);
}

static void do_read(Model *m)
{
    static uint32_t sector[N_SECTORS];

    m->stats->reads++;
    read_all(m, NULL, sector);
    if (memcmp(sector, m->now.head.sector, sizeof(sector)) != 0) {
        differs(m, "the head has other contents", 0);
    }
}

static void read_version(Model *m)
{
    const Content *v = m->now.n ? m->now.version[below(m, m->now.n)] : NULL;
    static uint32_t sector[N_SECTORS];
    TtBlockView *view = v ? tt_blockmap_view_open(m->map, v->id) : NULL;

    if (v) {
        m->stats->reads++;
        read_all(m, view, sector);
        tt_blockmap_view_close(m->map, view);
        if (memcmp(sector, v->sector, sizeof(sector)) != 0) {
            differs(m, "a version has other contents", v->id);
        }
    }
}

/* ---- versions ---- */

static void do_delete(Model *m)
{
    unsigned at = below(m, m->now.n);
    Content *gone;

    if (!m->now.n) {
        return;
    }
    gone = m->now.version[at];
    m->stats->deletes++;
    if (tt_blockmap_version_delete(m->map, gone->id, NULL) != TT_OK) {
        differs(m, "cannot delete a version", gone->id);
    }
    m->now.version[at] = m->now.version[--m->now.n];
    for (unsigned i = 0; i < m->now.n; i++) {
        if (m->now.version[i]->parent == gone->id) {
            /* Other states have the old one: a copy. */
            Content *copy = g_rc_box_dup(sizeof(*copy), m->now.version[i]);

            copy->parent = gone->parent;
            g_rc_box_release(m->now.version[i]);
            m->now.version[i] = copy;
        }
    }
    if (m->now.head.parent == gone->id) {
        m->now.head.parent = gone->parent;
    }
    g_rc_box_release(gone);
}

static void do_version(Model *m)
{
    TtVersionInfo info = { .date_s = 7, .has_tag = true };
    TtVersionInfo got;
    TtVersionId id;
    Content *v;

    if (m->now.n == VERSIONS_MAX) {
        do_delete(m);
    }
    if (tt_blockmap_version_new(m->map, &info, &id, NULL) != TT_OK) {
        differs(m, "cannot make a version", 0);
    }
    /* Its name is known only now: make it again, with the right one. */
    if (tt_blockmap_version_delete(m->map, id, NULL) != TT_OK) {
        differs(m, "cannot delete a version", id);
    }
    info.tag = (id + 1) * 3u;
    g_snprintf(info.name, sizeof(info.name), "v%u", id + 1);
    if (tt_blockmap_version_new(m->map, &info, &id, NULL) != TT_OK ||
        !tt_blockmap_version_info(m->map, id, &got)) {
        differs(m, "cannot make a version", 0);
    }
    m->stats->versions++;
    v = g_rc_box_dup(sizeof(*v), &m->now.head);
    v->id = id;
    m->now.version[m->now.n++] = v;
    m->now.head.parent = id;
}

static void do_goto(Model *m)
{
    unsigned at = below(m, m->now.n + 1);
    const Content *v = at < m->now.n ? m->now.version[at] : NULL;

    m->stats->gotos++;
    if (tt_blockmap_goto(m->map, v ? v->id : 0, NULL) != TT_OK) {
        differs(m, "cannot go to a version", at);
    }
    for (unsigned s = 0; s < N_SECTORS; s++) {
        uint32_t value = v ? v->sector[s] : base_of(m, s);

        if (m->now.head.sector[s] != value) {
            put_sector(m, s, value);
        }
    }
    m->now.head.parent = v ? v->id : 0;
}

/* The backing file gets another name. */
static void do_rename(Model *m)
{
    g_autofree char *name = NULL;

    if (m->has_backing) {
        name = g_strdup_printf("base%u", ++m->now.base);
        tt_blockmap_set_backing(m->map, name, NULL, NULL);
    }
}

/* ---- cuts ---- */

static void reopen(Model *m)
{
    unsigned tries = 0;

    do {
        commit(m, tries++ < 3);
    } while (tt_blockmap_is_dirty(m->map));
    tt_blockmap_free(m->map);
    open_map(m);
    check_now(m);
}

static size_t keep_some(void *opaque, size_t len)
{
    Model *m = opaque;

    switch (below(m, 4)) {
    case 0:
        return 0;
    case 1:
        /* Sectors of data are whole: so disks promise. */
        return len % SECTOR ? below(m, 257) * len / 256 :
               len * below(m, 257) / 256 / SECTOR * SECTOR;
    default:
        return len;
    }
}

static void adopt(Model *m, unsigned which)
{
    State found;

    copy_state(&found, &m->asked[which]);
    read_all(m, NULL, found.head.sector);
    drop_state(&m->now);
    m->now = found;
    for (unsigned i = 0; i < m->n_asked; i++) {
        drop_state(&m->asked[i]);
    }
    m->n_asked = 0;
    clear_late(m);
    note_unordered(m, false);
    forget_unordered(m);
    /* What was read is what the disk has; a sync makes that sure. */
    m->file->ops->sync(m->file, NULL);
    ask(m);
}

static void do_cut(Model *m)
{
    const char *what = NULL;

    m->stats->cuts++;
    /* In the middle of a commit, often. */
    if (below(m, 4)) {
        begin_commit(m);
        for (unsigned n = below(m, 6); n && m->commit_runs; n--) {
            step_commit(m, true);
        }
    }
    if (m->commit_runs && m->step < m->plan.n &&
        m->plan.step[m->step].kind == TT_BLOCK_WRITE) {
        const TtBlockStep *s = &m->plan.step[m->step];

        cut_file_write_part(m->file, s->offset, s->data, s->len,
                            (uint64_t)s->len * below(m, 1024) / 1024);
    }
    if (m->commit_runs && m->step == m->plan.n && below(m, 2)) {
        after_commit(m, true);
    }
    if (m->commit_runs) {
        tt_blockmap_commit_end(m->map, false);
        m->commit_runs = false;
    }
    m->is_said_twice = false;
    tt_blockmap_free(m->map);
    if (below(m, 3)) {
        cut_file_power(m->file, keep_some, m);
    }
    open_map(m);
    for (unsigned i = m->n_asked; i > 0; i--) {
        const char *why = compare(m, &m->asked[i - 1], true);

        if (!why) {
            adopt(m, i - 1);
            check_now(m);
            return;
        }
        what = why;
    }
    differs(m, what, m->n_asked);
}

/* ---- the run ---- */

static const struct {
    uint8_t share;                      /* of 256 */
    const char *name;
    void (*run)(Model *m);
} kinds[] = {
    { 90, "write", do_write },
    { 10, "whole clusters", do_whole },
    { 18, "zero", do_zero },
    { 18, "discard", do_discard },
    { 20, "read", do_read },
    { 12, "read a version", read_version },
    { 22, "version", do_version },
    { 9, "goto", do_goto },
    { 9, "delete", do_delete },
    { 16, "begin a commit", begin_commit },
};

/* Of what a commit has made durable, no damaged block may take a part without a word.
 * Too slow for a fuzzer. */
static void damage_each(Model *m)
{
    const char *what = NULL;
    uint64_t at;

    if (m->rng && m->is_said_twice && !m->commit_runs && m->n_asked == 1 &&
        below(m, 8) == 0) {
        what = blockmap_damage_each(m->file, below(m, 2) ? 512 : 4096, &at);
        m->stats->damaged++;
    }
    if (what) {
        differs(m, what, at);
    }
}

static void do_rest(Model *m, unsigned k)
{
    if (k < 18) {
        m->doing = "a step of a commit";
        step_commit(m, true);
    } else if (k < 26) {
        m->doing = "a commit";
        commit(m, true);
    } else if (k < 29) {
        m->doing = "a cut";
        do_cut(m);
    } else if (k < 30) {
        m->doing = "opening";
        reopen(m);
    } else if (k < 31) {
        m->doing = "another backing file";
        do_rename(m);
    } else {
        m->doing = "looking at all";
        check_now(m);
        damage_each(m);
    }
}

static void do_one(Model *m)
{
    unsigned k = next_byte(m);

    m->stats->ops++;
    if (m->n_asked > STATES_MAX - 8) {
        m->doing = "a commit that must not fail";
        commit(m, false);
    }
    for (unsigned i = 0; i < G_N_ELEMENTS(kinds); i++) {
        if (k < kinds[i].share) {
            m->doing = kinds[i].name;
            kinds[i].run(m);
            return;
        }
        k -= kinds[i].share;
    }
    do_rest(m, k);
}

static void begin(Model *m)
{
    TtBlockSpec spec = { .size_bytes = (uint64_t)N_SECTORS * SECTOR,
                         .cluster_bits = BITS };
    uint8_t first = next_byte(m);
    TtDiag diag;

    m->doing = "making a disk";
    m->has_backing = first & 1;
    spec.backing = m->has_backing ? "base" : NULL;
    spec.uuid[3] = first;
    m->file = cut_file_new();
    if (tt_blockmap_format_io(&spec, m->file, &diag) != TT_OK) {
        differs(m, diag.text, 0);
    }
    m->asked = g_new0(State, STATES_MAX);
    for (unsigned s = 0; s < N_SECTORS; s++) {
        m->late[s] = g_array_new(FALSE, FALSE, sizeof(uint32_t));
        m->was[s] = g_array_new(FALSE, FALSE, sizeof(uint32_t));
        m->older[s] = g_array_new(FALSE, FALSE, sizeof(uint32_t));
        m->now.head.sector[s] = base_of(m, s);
    }
    open_map(m);
    ask(m);
}

static void end(Model *m)
{
    m->doing = "the end";
    check_now(m);
    reopen(m);
    tt_blockmap_free(m->map);
    tt_io_close(m->file);
    drop_state(&m->now);
    for (unsigned i = 0; i < m->n_asked; i++) {
        drop_state(&m->asked[i]);
    }
    for (unsigned s = 0; s < N_SECTORS; s++) {
        g_array_unref(m->late[s]);
        g_array_unref(m->was[s]);
        g_array_unref(m->older[s]);
    }
    g_free(m->asked);
}

void blockmap_model_run(const uint8_t *data, size_t size, BlockmapModelStats *stats)
{
    BlockmapModelStats unused = { 0 };
    Model m = { .in = data, .end = data + size, .stats = stats ? stats : &unused };

    begin(&m);
    while (m.in < m.end) {
        do_one(&m);
    }
    end(&m);
}

void blockmap_model_random(uint64_t n, uint64_t seed, BlockmapModelStats *stats)
{
    Model m = { .rng = seed * 0x9e3779b97f4a7c15ull | 1, .stats = stats };

    begin(&m);
    for (uint64_t i = 0; i < n; i++) {
        do_one(&m);
    }
    end(&m);
}
