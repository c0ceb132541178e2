/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tt pack: a run as one file, with all that a replay needs.
 *
 * What the run says of the host stays at home unless it is asked for: host name,
 * directories and the command line of the manifest; of checkpoints that could be
 * branched from, the state of devices and the names of disk images. A branch
 * takes the checkpoints of its parent along, as parent/.
 * With --scrub of the log only its shape: see tt-tool-scrub.c.
 */
#include "tt-tool.h"
#include "run/tt-cpstate.h"
#include "log/tt-logparts.h"
#include "run/tt-marks.h"
#include "run/tt-pack.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

typedef struct Pack {
    const ToolArgs *args;
    const char *run, *file;
    char *left_out;             /* a sentence of the damage; NULL: nothing is */
    bool with_host, no_checkpoints, is_scrub;
    TtPackWriter *w;
    uint64_t bytes;             /* of the members */
    bool said;                  /* what is wrong */
    bool is_store;              /* ... is with its own checkpoints */
    TtIo *log;                  /* opened before the checkpoints: it goes back to the
                                   first of them, whatever a window gives up */
    TtDiag diag;
} Pack;

/* ---- members ---- */

/* All of it, or the first @most bytes. */
static TtStatus add_some(Pack *p, const char *prefix, const char *name, TtIo *io,
                         uint64_t most)
{
    g_autofree char *member = g_strconcat(prefix, name, NULL);
    uint64_t bytes;
    TtStatus st = io->ops->size(io, &bytes, &p->diag);

    if (st == TT_OK) {
        bytes = MIN(bytes, most);
        st = tt_pack_add(p->w, member, io, bytes, &p->diag);
        p->bytes += bytes;
    }
    return st;
}

static TtStatus add(Pack *p, const char *prefix, const char *name, TtIo *io)
{
    return add_some(p, prefix, name, io, UINT64_MAX);
}

static TtStatus add_file(Pack *p, const char *prefix, const char *dir,
                         const char *name, uint64_t most)
{
    g_autofree char *path = g_build_filename(dir, name, NULL);
    TtIo *io;
    TtStatus st = tt_io_posix_open(path, &io, &p->diag);

    if (st == TT_OK) {
        st = add_some(p, prefix, name, io, most);
        tt_io_close(io);
    }
    return st;
}

static void set_text(char **member, const char *text)
{
    g_free(*member);
    *member = g_strdup(text);
}

static TtStatus add_manifest(Pack *p, const char *prefix, TtManifest *m)
{
    TtIo *io = tt_io_mem_new(NULL, 0);
    char *parent = m->parent_path;
    TtStatus st;
    uint64_t named;

    if (!p->with_host) {
        set_text(&m->host, "");
        set_text(&m->directory, "");
        set_text(&m->command_line, "");
    }
    if (m->features & TT_FEATURE_PARENT) {
        m->parent_path = (char *)"parent";
    }
    if (p->is_scrub) {
        m->features |= TT_FEATURE_SCRUBBED;
    }
    /* Of a log without names: add_edited_log. */
    named = m->features & (TT_FEATURE_DISKS | TT_FEATURE_FRAMES);
    m->features &= ~named;
    st = tt_manifest_write(m, io, &p->diag);
    m->features |= named;               /* the pack may be begun anew */
    m->parent_path = parent;
    if (st == TT_OK) {
        st = add(p, prefix, "manifest", io);
    }
    tt_io_close(io);
    return st;
}

/* ---- checkpoints ---- */

/* Nothing to branch from any more: no device state, no names of images. */
static void strip(void **blob, size_t *len, uint32_t *flags)
{
    TtCpState s;
    uint32_t n;

    if (!(*flags & TT_CHECKPOINT_FULL)) {
        return;
    }
    *flags &= ~TT_CHECKPOINT_FULL;
    if (tt_cpstate_decode((TtBytes) { *blob, *len }, &s, NULL) == TT_OK) {
        uint8_t *bare;

        s.full = (TtBytes) { 0 };
        bare = tt_cpstate_encode(&s, &n);
        g_free(*blob);
        *blob = bare;
        *len = n;
    } else {                            /* nothing of it can be told apart */
        *len = 0;
    }
}

/* The journal anew, without what is dead; then the pages that it names, without what
 * lies after the last of them, which may be a hole of terabytes. */
static TtStatus add_store(Pack *p, const char *prefix, const char *dir,
                          const TtManifest *m)
{
    TtPageStore *ps;
    const TtDiag *damage = NULL;
    TtIo *journal;
    TtStatus st = tt_runstore_open(dir, m, 0, &ps, &p->diag);

    if (st == TT_END) {
        return TT_OK;
    }
    for (unsigned i = 0; ps && i < 2; i++) {
        damage = damage ? damage : tt_pagestore_damage(ps, i);
    }
    if (damage) {
        p->diag = *damage;
        st = TT_ERR_FORMAT;
    }
    if (st == TT_OK) {
        journal = tt_io_mem_new(NULL, 0);
        st = tt_pagestore_export(ps, journal, m->uuid,
                                 p->with_host ? NULL : strip, &p->diag);
        if (st == TT_OK) {
            st = add(p, prefix, "checkpoints", journal);
        }
        tt_io_close(journal);
        if (st == TT_OK) {
            st = add_file(p, prefix, dir, "pages",
                          tt_pagestore_stats(ps).pages_file_bytes);
        }
    }
    tt_pagestore_free(ps);
    return st;
}

static char *prefix_of(unsigned depth)
{
    GString *s = g_string_new(NULL);

    while (depth--) {
        g_string_append(s, "parent/");
    }
    return g_string_free(s, false);
}

/* What a replay of the branch @m in @run needs of the run that it began in, and
 * that of the one before. */
static TtStatus add_parent(Pack *p, const char *run, const TtManifest *m,
                           unsigned depth)
{
    g_autofree char *prefix = prefix_of(depth);
    g_autofree char *dir = tt_runstore_parent_path(m, run);
    g_autofree char *path = g_build_filename(dir, "manifest", NULL);
    g_autofree char *points = g_build_filename(dir, "checkpoints", NULL);
    TtManifest pm;
    TtStatus st = tt_manifest_load(path, &pm, &p->diag);

    if (st != TT_OK) {
        tool_complain("the run is a branch and needs its parent, which is not "
                      "there: %s", p->diag.text);
        p->said = true;
        return st;
    }
    if (memcmp(pm.uuid, m->parent_uuid, 16) ||
        !g_file_test(points, G_FILE_TEST_EXISTS)) {
        tool_complain("the run is a branch, and '%s' is no longer its parent, or "
                      "has lost its checkpoints", dir);
        p->said = true;
        st = TT_ERR_INVALID;
    }
    if (st == TT_OK) {
        st = add_store(p, prefix, dir, &pm);
    }
    if (st == TT_OK && pm.features & TT_FEATURE_PARENT) {
        st = depth < TT_PACK_DEPTH_MAX ? add_parent(p, dir, &pm, depth + 1) :
            tt_fail(&p->diag, TT_ERR_LIMIT, "it has more than %u parents",
                    TT_PACK_DEPTH_MAX);
    }
    if (st == TT_OK) {
        st = add_manifest(p, prefix, &pm);      /* changes it */
    }
    tt_manifest_cleanup(&pm);
    return st;
}

/* The log with its shape only, or with what disks and other runs have: into a file without a
 * name in the directory of the pack, then into that. */
static TtStatus add_edited_log(Pack *p, const TtManifest *m, TtLogReader *r)
{
    g_autofree char *path = g_strdup_printf("%s.%d", p->file, (int)getpid());
    ToolFill *fill = p->is_scrub ? NULL : tool_fill_new(p->args, p->run, m);
    TtIo *whole;
    TtStatus st = tool_edit_log(r, path, fill, &whole, &p->diag);

    tool_fill_free(fill);
    if (st == TT_OK) {
        st = add(p, "", "log", whole);
    }
    tt_io_close(whole);
    return st;
}

/* ---- pack ---- */

#define TRIES_MAX   8           /* while it is recorded */

/* Not what could be of any size. */
static bool are_marks(Pack *p, const char *path)
{
    TtIo *io;
    TtStatus st = tt_io_posix_open(path, &io, &p->diag);

    if (st == TT_OK) {
        st = tt_marks_load(io, NULL, NULL, NULL, &p->diag);
        tt_io_close(io);
    }
    return st == TT_OK;
}

static TtStatus add_all(Pack *p, TtManifest *m, TtLogReader *r)
{
    g_autofree char *marks = g_build_filename(p->run, "marks", NULL);
    bool is_branch = m->features & TT_FEATURE_PARENT;
    bool is_edited = p->is_scrub ||
        m->features & (TT_FEATURE_DISKS | TT_FEATURE_FRAMES);
    TtStatus st = TT_OK;

    if (is_branch && !p->is_scrub) {
        st = add_parent(p, p->run, m, 1);
    }
    if (st == TT_OK && !p->is_scrub && !p->no_checkpoints) {
        st = add_store(p, "", p->run, m);
        p->is_store = st != TT_OK && st != TT_ERR_NOSPACE;
    }
    if (st == TT_OK) {
        st = add_manifest(p, "", m);            /* changes it */
    }
    if (st == TT_OK && p->is_scrub) {
        return add_edited_log(p, m, r);
    }
    if (st == TT_OK && g_file_test(marks, G_FILE_TEST_IS_SYMLINK)) {
        return tt_fail(&p->diag, TT_ERR_INVALID, "its 'marks' is a symbolic "
                       "link, whose target may not belong to the run: replace it "
                       "with a file, or remove it");
    }
    if (st == TT_OK && g_file_test(marks, G_FILE_TEST_IS_REGULAR)) {
        st = are_marks(p, marks) ? add_file(p, "", p->run, "marks", UINT64_MAX) :
            TT_ERR_LIMIT;
    }
    if (st == TT_OK && is_edited) {
        return add_edited_log(p, m, r);
    }
    return st == TT_OK ? add(p, "", "log", p->log) : st;
}

/* TT_END: the recorder came in between. */
static TtStatus pack_once(Pack *p, TtManifest *m, TtLogReader *r)
{
    bool has_store = !p->is_scrub && !p->no_checkpoints;
    TtIo *io;
    TtStatus st = tt_io_posix_create_unnamed(p->file, &io, &p->diag);

    if (st != TT_OK) {
        tool_problem(&p->diag);         /* which names the file */
        p->said = true;
        return st;
    }
    p->bytes = 0;
    st = tt_pack_create(io, m->uuid, &p->w, &p->diag);
    if (st == TT_OK) {
        st = tt_logparts_open(p->run, &p->log, &p->diag);
    }
    if (st == TT_OK) {
        st = add_all(p, m, r);
        tt_io_close(p->log);
    }
    if (st == TT_OK) {
        st = tt_pack_end(p->w, &p->diag);
    }
    if (tool_is_growing() && has_store &&
        (st == TT_ERR_FORMAT || (st == TT_OK && !tool_pack_is_whole(io, m, p->run)))) {
        st = TT_END;
    }
    if (st == TT_OK) {
        st = tt_io_posix_name(io, &p->diag);
    }
    g_clear_pointer(&p->w, tt_pack_writer_free);
    return st;
}

static int pack(Pack *p, TtManifest *m, TtLogReader *r)
{
    TtStatus st = TT_END;

    for (unsigned i = 0; i < TRIES_MAX && st == TT_END; i++) {
        st = pack_once(p, m, r);
    }
    if (st == TT_OK) {
        return TOOL_FINE;
    }
    if (st == TT_END) {
        return tool_complain("'%s' is being recorded, and its checkpoints change "
                             "faster than they can be packed (%u tries): use tt "
                             "save to keep a window", p->run, TRIES_MAX);
    }
    return p->said ? TOOL_PROBLEM :
        tool_complain("'%s' cannot be packed: %s%s", p->run, p->diag.text,
                      p->is_store && !tt_log_reader_is_window(r) ? " (tt check "
                      "has details; --no-checkpoints packs it without "
                      "checkpoints)" :
                      p->is_store || st == TT_ERR_FORMAT ?
                      " (tt check has details)" : "");
}

/* A sentence, g_free: 'marks' that is no file stays behind. NULL: it is one, or there
 * is none. */
static char *find_left_out(const Pack *p)
{
    g_autofree char *path = g_build_filename(p->run, "marks", NULL);
    bool is_fit = p->is_scrub || !g_file_test(path, G_FILE_TEST_EXISTS) ||
        g_file_test(path, G_FILE_TEST_IS_REGULAR);

    tt_replace_controls(path, '?');
    return is_fit ? NULL : g_strdup_printf("marks: '%s' is not a regular file",
                                           path);
}

/* Of what goes along as it is, damage and all; and what does not go along. */
static GPtrArray *find_damage(Pack *p, const TtManifest *m, TtLogReader *r)
{
    bool has_store = !p->no_checkpoints && !tool_is_growing();
    GPtrArray *all;

    p->left_out = find_left_out(p);
    all = tool_damage(p->run, m, r, p->is_scrub ? 0 : TOOL_LOOK_PARENTS |
                      (p->left_out ? 0 : TOOL_LOOK_MARKS) |
                      (has_store ? TOOL_LOOK_STORE : 0));
    if (p->left_out) {
        g_ptr_array_add(all, p->left_out);
    }
    return all;
}

static void print_packed(const Pack *p, bool is_json, const GPtrArray *damage)
{
    g_autofree char *bytes = tool_bytes(p->bytes);
    g_autofree char *name = g_strdup(p->file);

    if (is_json) {
        tool_json_begin();
        printf("\"file\": ");
        tool_json_string(p->file);
        printf(", \"bytes\": %" PRIu64, p->bytes);
        tool_json_list("damaged", damage);
        printf("}\n");
    } else {
        tt_replace_controls(name, '?');
        printf("%s: %s%s\n", name, bytes, p->is_scrub ? ", scrubbed: it cannot "
               "be replayed" : "");
    }
    for (unsigned i = 0; i < damage->len; i++) {
        tool_complain("%s; it is %s", (char *)damage->pdata[i],
                      damage->pdata[i] == p->left_out ? "left out" :
                      "packed as it is");
    }
}

int tool_pack(const ToolArgs *a)
{
    g_autoptr(GPtrArray) damage = NULL;
    Pack p = {
        .args = a,
        .run = a->operand[0], .file = a->operand[1],
        .with_host = tool_has(a, "--with-host"),
        .no_checkpoints = tool_has(a, "--no-checkpoints"),
        .is_scrub = tool_has(a, "--scrub"),
    };
    TtManifest m;
    TtLogReader *r;
    int result;

    if (p.is_scrub && p.with_host) {
        return tool_usage(a->command, "--scrub and --with-host exclude each "
                          "other");
    }
    r = tool_is_fit(p.file) ? tool_open_run(p.run, &m) : NULL;
    if (!r) {
        return TOOL_PROBLEM;
    }
    result = tool_log_status(r);
    if (p.no_checkpoints && !p.is_scrub && tt_log_reader_is_window(r)) {
        result = tool_complain("'%s' is the window of a flight recorder, whose "
                               "replay begins at a checkpoint: leave out "
                               "--no-checkpoints", p.run);
    }
    if (result == TOOL_FINE) {
        damage = find_damage(&p, &m, r);        /* packing changes @m */
        result = pack(&p, &m, r);
    }
    if (result == TOOL_FINE) {
        print_packed(&p, tool_has(a, "--json"), damage);
        result = damage->len ? TOOL_PROBLEM : TOOL_FINE;
    }
    tt_manifest_cleanup(&m);
    tt_log_reader_free(r);
    return result;
}
