/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Undo and redo of what was typed, in place (docs/decisions/0022).
 *
 *   undo -> full checkpoint of now, to be redone -> recording ends -> branch at the
 *           checkpoint before that input -> the VM runs, and is recorded there
 *
 * Each undo and each redo makes a run, RUN-undo-N or RUN-redo-N, a branch of the one in
 * which the input was typed, or after 24 of them one that has no parent. Nothing that
 * was recorded is ever changed.
 */
#include "qemu/osdep.h"
#include "undo/tt-undo.h"
#include "branch/tt-branch.h"
#include "checkpoint/tt-checkpointer.h"
#include "checkpoint/tt-cplist.h"
#include "control/tt-attach.h"
#include "record/tt-record-options.h"
#include "run/tt-manifest.h"
#include "run/tt-runstore.h"
#include "session/tt-checkpoint.h"
#include "session/tt-paths.h"
#include "session/tt-session.h"
#include "tt-undo-int.h"
#include "tt/hooks.h"
#include "qapi/error.h"
#include "qemu/error-report.h"
#include "qemu/notify.h"
#include "system/runstate.h"
#include "system/runstate-action.h"
#include "system/system.h"

#define LOOKED_AT   10000           /* inputs, for one whose state is kept */

/* A chain of parents has 32 runs at most (run/tt-runstore.c): sooner than that a run
 * begins that has none, with all of RAM in its log. */
#define DEPTH_MAX   24

static struct {
    bool on;
    TtRecordOptions options;        /* of every run that is made here */
    TtUndoList *list;
    const char *root;               /* the run that it began with */
    unsigned depth;                 /* of the present run; of root: not asked yet */
    unsigned n_branches;
    TtUndoTask *at_work;            /* one after the other */
    bool is_ending;                 /* QEMU */
} un;

static void shuts_down(Notifier *n, void *cause)
{
    un.is_ending = shutdown_action != SHUTDOWN_ACTION_PAUSE;
}

void tt_undo_option(uint64_t pause_ms)
{
    static Notifier notifier = { .notify = shuts_down };

    qemu_register_shutdown_notifier(&notifier);
    un.on = true;
    un.options = tt_record_options;
    un.options.dir_option = "";
    un.list = tt_undolist_new();
    tt_typed_begin(pause_ms);
}

TtUndoList *tt_undo_list(void)
{
    return un.list;
}

/* ---- which run ---- */

/* As far as it matters. */
static unsigned count_parents(const TtManifest *m, const char *run, unsigned max)
{
    g_autofree char *dir = max && m->features & TT_FEATURE_PARENT ?
        tt_runstore_parent_path(m, run) : NULL;
    g_autofree char *path = dir ? g_build_filename(dir, "manifest", NULL) : NULL;
    TtManifest parent;
    unsigned n;

    if (!path || tt_manifest_load(path, &parent, NULL) != TT_OK) {
        return !!path;
    }
    n = 1 + count_parents(&parent, dir, max - 1);
    tt_manifest_cleanup(&parent);
    return n;
}

TtUndoPoint tt_undo_point(uint32_t id)
{
    if (!un.root) {
        un.root = tt_session.dir;
        un.depth = count_parents(&tt_session.manifest, tt_session.dir, DEPTH_MAX);
    }
    return (TtUndoPoint) { .run = tt_session.dir, .id = id, .depth = un.depth };
}

void tt_undo_counts(uint64_t *undos, uint64_t *redos)
{
    *undos = un.on ? tt_undolist_undos(un.list) : 0;
    *redos = un.on ? tt_undolist_redos(un.list) : 0;
}

/* ---- may it be? ---- */

static bool may_undo(Error **errp)
{
    if (!un.on) {
        error_setg(errp, "undo is not enabled: start QEMU with -tt record,undo=console");
        return false;
    }
    if (un.is_ending) {
        error_setg(errp, "QEMU is exiting");
        return false;
    }
    if (tt_past) {
        error_setg(errp, "the past of the recording is shown: " TT_RETURN_FIRST);
        return false;
    }
    if (tt_recording() && tt_session.live && !tt_record_options.undo) {
        error_setg(errp, "this recording was started without undo: only what was typed "
                   "during the recording of -tt record,undo=console can be undone");
        return false;
    }
    return tt_is_live(errp);
}

/* Ids of the full checkpoints of the present run. */
static GHashTable *full_ones(void)
{
    GHashTable *ids = g_hash_table_new(NULL, NULL);
    g_autoptr(GArray) all = tt_checkpointer_list();

    for (unsigned i = 0; i < all->len; i++) {
        const TtCheckpointDesc *c = &g_array_index(all, TtCheckpointDesc, i);

        if (c->full) {
            g_hash_table_add(ids, GUINT_TO_POINTER(c->id));
        }
    }
    return ids;
}

/* Is the checkpoint still there? What has ended thins nothing. */
static bool is_kept(const TtUndoPoint *p, GHashTable *full)
{
    return p->id != TT_UNDO_NO_POINT &&
        (strcmp(p->run, tt_session.dir) ||
         g_hash_table_contains(full, GUINT_TO_POINTER(p->id)));
}

static void say_too_many(int64_t n, Error **errp)
{
    uint64_t undos, redos;
    uint64_t max;

    tt_undo_counts(&undos, &redos);
    max = n < 0 ? undos : redos;
    if (!max) {
        error_setg(errp, n < 0 ? "nothing was typed that can be undone" :
                   "nothing was undone that can be redone");
    } else {
        error_setg(errp, "only %" PRIu64 " input%s can be %s", max, max > 1 ? "s" : "",
                   n < 0 ? "undone" : "redone");
    }
}

/* The next one on the way that is kept, or else after it. */
static void say_not_kept(int64_t n, GHashTable *full, Error **errp)
{
    int64_t near = 0;

    for (int64_t d = 1; !near && d < LOOKED_AT; d++) {
        for (int64_t k = n - d; !near && k <= n + d; k += 2 * d) {
            const TtUndoPoint *p = k ? tt_undolist_at(un.list, k) : NULL;

            near = p && (k < 0) == (n < 0) && is_kept(p, full) ? k : 0;
        }
    }
    if (near) {
        const char *verb = near < 0 ? "undo" : "redo";
        int64_t count = near < 0 ? -near : near;

        error_setg(errp, "there is no checkpoint of that state (deleted, or thinned out "
                   "because of max-size or a full disk): the nearest is that of 'tt %s "
                   "%" PRId64 "' (in QMP tt-%s with count=%" PRId64 ")", verb, count,
                   verb, count);
    } else {
        error_setg(errp, "there is no checkpoint of that state (deleted, or thinned out "
                   "because of max-size or a full disk), and none near it");
    }
}

static const TtUndoPoint *target(int64_t n, Error **errp)
{
    const TtUndoPoint *p = tt_undolist_at(un.list, n);
    GHashTable *full = full_ones();

    if (!p) {
        say_too_many(n, errp);
    } else if (!is_kept(p, full)) {
        say_not_kept(n, full, errp);
        p = NULL;
    }
    g_hash_table_unref(full);
    return p;
}

/* ---- the steps ---- */

bool tt_undo_is_at_work(void)
{
    return un.at_work;
}

/* Beside the first run, so that all of them can be moved together. */
static char *fresh_directory(int64_t n)
{
    for (;;) {
        char *path = g_strdup_printf("%s-%s-%u", un.root, n < 0 ? "undo" : "redo",
                                     ++un.n_branches);

        if (!g_file_test(path, G_FILE_TEST_EXISTS)) {
            return path;
        }
        g_free(path);
    }
}

static void go(TtUndoTask *t)
{
    g_autofree char *dir = fresh_directory(t->n);
    const TtUndoPoint *p = target(t->n, &t->err);
    TtRecordOptions opt = un.options;
    bool is_alone = p && p->depth >= DEPTH_MAX;

    opt.dir = dir;
    if (p && tt_attach_branch(&opt, p->run, p->id, is_alone, &t->err)) {
        un.depth = is_alone ? 0 : p->depth + 1;
        tt_undolist_go(un.list, t->n);
        tt_typed_anew();
        error_printf("tt: recording into %s, %s %s\n", tt_printable(tt_session.dir),
                     is_alone ? "a run of its own, whose disks come from" : "a branch of",
                     tt_printable(p->run));
    }
}

/* Not if there is something to redo: then nothing was typed since. False: later. */
static bool leave(TtUndoTask *t)
{
    TtUndoPoint p;

    if (t->n > 0 || tt_undolist_redos(un.list) || t->has_left) {
        return true;
    }
    if (!t->is_leaving) {
        const TtUndoPoint *to = tt_undolist_at(un.list, t->n);

        t->is_leaving = true;
        tt_cplist_spare(!strcmp(to->run, tt_session.dir) ? to->id : 0);
        t->leaving = (TtCheckpointerTask) {
            .kind = TT_CHECKPOINTER_ADD, .full = g_string_new(NULL), .is_thinned = true,
        };
    }
    if (t->cancelled && !t->told_cancel) {      /* once: then its checkpoint goes */
        t->told_cancel = t->leaving.cancelled = true;
    }
    if (!tt_checkpointer_step(&t->leaving)) {
        return false;
    }
    g_string_free(t->leaving.full, true);
    t->has_left = true;
    if (t->leaving.err) {
        error_propagate_prepend(&t->err, t->leaving.err, "cannot make a checkpoint of "
                                "the present, which redo needs: ");
    } else if (!t->cancelled) {
        p = tt_undo_point(t->leaving.id);
        tt_undolist_leave(un.list, &p);
    }
    return true;
}

static bool has_ended(TtUndoTask *t)
{
    tt_cplist_spare(0);
    un.at_work = NULL;
    return true;
}

bool tt_undo_step(TtUndoTask *t)
{
    if (un.at_work != t && (un.at_work || tt_typed_is_any())) {
        return t->cancelled;            /* what was typed before comes first */
    }
    if (!t->has_begun && (!may_undo(&t->err) || !target(t->n, &t->err))) {
        return has_ended(t);
    }
    t->has_begun = true;
    un.at_work = t;
    if (!leave(t)) {
        return false;                   /* a checkpoint is never left half made */
    }
    if (t->err || t->cancelled || !may_undo(&t->err)) {
        return has_ended(t);
    }
    if (tt_checkpointer_is_busy()) {
        return false;                   /* it is flushed while the VM runs */
    }
    go(t);
    return has_ended(t);
}
