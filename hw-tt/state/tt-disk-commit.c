/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * disk=commit: what the stores of a run have goes into the images when QEMU ends. Whether
 * all are what they were (run/tt-bases.h) and can be opened comes before the first byte
 * that is written; what fails then can be repeated by tt disk commit.
 */
#include "qemu/osdep.h"
#include "hw-tt/state/tt-disks-int.h"
#include "hw-tt/state/tt-disk-image.h"
#include "run/tt-bases.h"
#include "session/tt-paths.h"
#include "qapi/error.h"
#include "block/block_int.h"
#include "qemu/error-report.h"
#include "system/block-backend.h"

/* ---- at the end ---- */

static bool commits_at_end, some_left;

void tt_disks_commit_at_end(void)
{
    commits_at_end = true;
}

bool tt_disks_are_committed_at_end(void)
{
    return commits_at_end;
}

/* Several recordings may have put a store on an image; all go with the device. */
char *tt_disks_leave(DeviceState *dev)
{
    g_autoptr(GArray) disks = tt_disks_collect();

    for (unsigned i = 0; commits_at_end && i < disks->len; i++) {
        const TtDisk *k = &g_array_index(disks, TtDisk, i);

        if (k->bs && tt_disk_is_store(k->bs) && blk_get_attached_dev(k->blk) == dev) {
            some_left = true;
            return tt_disk_store_path(k->bs);
        }
    }
    return NULL;
}

bool tt_disks_some_left(void)
{
    return some_left;
}

/* ---- the stores ---- */

typedef struct Writing {
    BlockDriverState *bs, *image;   /* a store, and what is below it */
    BlockDriverState *upper;        /* a later recording's store on top of it, or NULL */
    char *path, *disks, *name;      /* of the store: DISKS/NAME.tt */
    char *image_name;
} Writing;

static void clear_writing(void *opaque)
{
    Writing *w = opaque;

    g_free(w->path);
    g_free(w->disks);
    g_free(w->name);
    g_free(w->image_name);
}

static BlockDriverState *below(BlockDriverState *bs)
{
    GRAPH_RDLOCK_GUARD_MAINLOOP();
    return bdrv_cow_bs(bs);
}

static void add_writing(GArray *all, BlockDriverState *bs, BlockDriverState *upper)
{
    Writing w = {
        .bs = bs, .image = below(bs), .upper = upper, .path = tt_disk_store_path(bs),
    };

    GRAPH_RDLOCK_GUARD_MAINLOOP();
    w.disks = g_path_get_dirname(w.path);
    w.name = tt_disk_store_name(w.path);
    w.image_name = w.image ? tt_disk_image_name(w.image) : g_strdup("");
    g_array_append_val(all, w);
}

/* From the top down: what an upper store has goes through the lower one. */
static GArray *find_all(void)
{
    g_autoptr(GArray) disks = tt_disks_collect();
    GArray *all = g_array_new(false, false, sizeof(Writing));

    g_array_set_clear_func(all, clear_writing);
    for (unsigned i = 0; i < disks->len; i++) {
        BlockDriverState *bs = g_array_index(disks, TtDisk, i).bs, *upper = NULL;

        for (; bs && tt_disk_is_first(disks, i) && tt_disk_is_store(bs); bs = below(bs)) {
            add_writing(all, bs, upper);
            upper = bs;
        }
    }
    return all;
}

/* ---- before ---- */

/* One that is not what it was when the recording began to use it. NULL: none, or
 * (*@is_unknown) the note of what it was is gone. */
static char *changed_image(const Writing *w, bool *is_unknown)
{
    char *changed = NULL;
    TtBases bases;
    TtBase *k;

    *is_unknown = false;
    if (tt_bases_load(w->disks, &bases, NULL) == TT_OK) {
        k = tt_bases_find(&bases, w->name);
        *is_unknown = !k;
        changed = k ? tt_base_changed(k, w->disks, NULL) : NULL;
        tt_bases_cleanup(&bases);
    }
    return changed;
}

static void make_writable(const Writing *w, Error **errp)
{
    Error *err = NULL;

    if (!w->image) {
        error_setg(errp, "there is no image below '%s'", tt_printable(w->path));
    } else if (bdrv_is_read_only(w->image) &&
               bdrv_reopen_set_read_only(w->image, false, &err) < 0) {
        error_setg(errp, "cannot open the image '%s' for writing: %s",
                   tt_printable(w->image_name), error_get_pretty(err));
        error_free(err);
    }
}

/* ---- one of them ---- */

/* @state; with @has_changed, also what the image looks like from now on, and *@has_changed
 * is whether it was written. */
static bool note(const Writing *w, TtBaseState state, bool *has_changed, Error **errp)
{
    TtBases bases;
    TtDiag diag;
    bool ok = tt_bases_load(w->disks, &bases, &diag) == TT_OK;
    TtBase *k = ok ? tt_bases_find(&bases, w->name) : NULL;

    if (k) {
        k->state = state;
        if (has_changed) {
            g_autofree char *changed = tt_base_changed(k, w->disks, NULL);

            *has_changed = changed || !k->n_files;
            k->state = state == TT_BASE_PARTIAL && !*has_changed ? TT_BASE_FRESH : state;
            tt_base_look_again(k, w->disks, NULL, w->path);
        }
        ok = tt_bases_save(w->disks, &bases, &diag) == TT_OK;
    }
    tt_bases_cleanup(&bases);
    if (!ok) {
        error_setg(errp, "%s", diag.text);
    }
    return ok;
}

/* QEMU commits no node that is below another one: for a moment it is not, and the VM is
 * stopped. */
static int write_below(const Writing *w)
{
    int ret;

    if (!w->upper) {
        return bdrv_commit(w->bs);
    }
    bdrv_ref(w->bs);
    ret = bdrv_set_backing_hd(w->upper, NULL, NULL);
    if (ret >= 0) {
        ret = bdrv_is_read_only(w->bs) ? bdrv_reopen_set_read_only(w->bs, false, NULL) : 0;
        ret = ret >= 0 ? bdrv_commit(w->bs) : ret;
        bdrv_set_backing_hd(w->upper, w->bs, NULL);
    }
    bdrv_unref(w->bs);
    return ret;
}

/* All of it, and durable: bdrv_commit says nothing of a flush that failed. */
static bool write_image(const Writing *w, Error **errp)
{
    Error *err = NULL;
    int ret = write_below(w), closed;

    ret = ret >= 0 ? bdrv_flush(w->image) : ret;
    bdrv_flush(w->bs);
    closed = bdrv_reopen_set_read_only(w->image, true, &err);   /* so all is in the file */
    if (ret < 0) {
        error_setg_errno(errp, -ret, "cannot write into the image '%s'",
                         tt_printable(w->image_name));
    } else if (closed < 0) {
        error_setg(errp, "cannot complete the image '%s': %s", tt_printable(w->image_name),
                   error_get_pretty(err));
    }
    error_free(err);
    return ret >= 0 && closed >= 0;
}

/* *@is_partial: it has a part of what the guest wrote. */
static bool commit(const Writing *w, bool *is_partial, Error **errp)
{
    Error *err = NULL;
    bool ok;

    *is_partial = false;
    if (!note(w, TT_BASE_BEGUN, NULL, errp)) {
        return false;
    }
    if (!write_image(w, errp)) {
        note(w, TT_BASE_PARTIAL, is_partial, NULL);
        return false;
    }
    ok = note(w, TT_BASE_DONE, &(bool) { false }, &err);
    if (!ok) {
        error_setg(errp, "the image '%s' has all of it, but the run cannot note that: %s",
                   tt_printable(w->image_name), error_get_pretty(err));
        error_free(err);
    }
    return ok;
}

/* ---- all of them ---- */

static void add_word(GString *to, const char *between, const char *fmt, const char *name)
{
    g_string_append(to, to->len ? between : "");
    g_string_append_printf(to, fmt, tt_printable(name));
}

static char *run_of(const Writing *w)
{
    return g_path_get_dirname(w->disks);
}

/* The commands for those from the @n-th on. */
static char *how_to_repeat(const GArray *all, unsigned n)
{
    GString *how = g_string_new(NULL);
    const char *last = NULL;

    for (unsigned i = n; i < all->len; i++) {
        g_autofree char *run = run_of(&g_array_index(all, Writing, i));

        if (g_strcmp0(last, tt_printable(run))) {
            add_word(how, " and then ", "'tt disk commit %s'", run);
            last = tt_printable(run);
        }
    }
    return g_string_free(how, false);
}

/* @n are complete; what the next one is. */
static void say_what_failed(const GArray *all, unsigned n, bool is_partial,
                            const Error *why, Error **errp)
{
    g_autoptr(GString) what = g_string_new(NULL);
    g_autofree char *how = how_to_repeat(all, n);

    for (unsigned i = 0; i < n + is_partial; i++) {
        add_word(what, ", ", i < n ? "'%s' has all of it" : "'%s' only a part",
                 g_array_index(all, Writing, i).image_name);
    }
    error_setg(errp, "what the guest wrote is not %sin your images%s%s%s: %s; the run still "
               "has it: repeat with %s", what->len ? "completely " : "",
               what->len ? " (" : "", what->str, what->len ? ")" : "",
               error_get_pretty(why), how);
}

static void say_unknown(const Writing *w, Error **errp)
{
    error_setg(errp, "what the guest wrote is not in your images: what '%s/" TT_BASES_NAME
               "' said of them is gone, so nobody knows whether they have changed; the run "
               "still has it: see 'tt disk commit' and 'tt disk export'",
               tt_printable(w->disks));
}

static void say_changed(const Writing *w, const char *image, Error **errp)
{
    g_autofree char *run = run_of(w);

    if (access(image, F_OK)) {
        error_setg(errp, "what the guest wrote is not in your images: the image '%s' is not "
                   "there any more; the run still has it: put the image back, then 'tt disk "
                   "commit %s'", tt_printable(image), tt_printable(run));
        return;
    }
    error_setg(errp, "what the guest wrote is not in your images: the image '%s' has changed "
               "since the recording began to use it, and both would be mixed; the run still "
               "has it: 'tt disk export %s OUT --disk %s' makes a disk of its own",
               tt_printable(image), tt_printable(run), w->name);
}

static bool commit_all(Error **errp)
{
    g_autoptr(GArray) all = find_all();
    bool is_partial = false;
    Error *err = NULL;
    unsigned n = 0;

    for (unsigned i = 0; i < all->len; i++) {
        const Writing *w = &g_array_index(all, Writing, i);
        bool is_unknown;
        g_autofree char *changed = changed_image(w, &is_unknown);

        if (changed) {
            say_changed(w, changed, errp);
        } else if (is_unknown) {
            say_unknown(w, errp);
        }
        if (changed || is_unknown) {
            return false;
        }
    }
    for (unsigned i = 0; !err && i < all->len; i++) {
        make_writable(&g_array_index(all, Writing, i), &err);
    }
    while (!err && n < all->len) {
        n += commit(&g_array_index(all, Writing, n), &is_partial, &err);
    }
    for (unsigned i = 0; i < n; i++) {      /* an image may be below several of them */
        note(&g_array_index(all, Writing, i), TT_BASE_DONE, &(bool) { false },
             err ? NULL : &err);
    }
    if (err) {
        say_what_failed(all, n, is_partial, err, errp);
        error_free(err);
        return false;
    }
    return true;
}

bool tt_disks_commit(Error **errp)
{
    int here = tt_disks_enter_start();
    bool ok = commit_all(errp);

    tt_disks_come_back(here);
    return ok;
}
