/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Deletes the versions of disks that no checkpoint needs any more, and copies of disks
 * with snapshot=on: the thread that drops a checkpoint notes them, and the main loop
 * deletes them when the files on disk no longer have the checkpoint. So a recorder that
 * is killed, or a power cut, may leave a version that nobody needs, but never a
 * checkpoint without its version. The same holds for a version that was pinned for a
 * checkpoint that the store did not take.
 */
#include "qemu/osdep.h"
#include "checkpoint/tt-cpdisks.h"
#include "checkpoint/tt-cplist.h"
#include "hw-tt/state/tt-disks.h"
#include "io/tt-base.h"
#include "record/tt-flight.h"
#include "run/tt-cpstate.h"
#include "run/tt-fullstate.h"
#include "run/tt-runlock.h"
#include "run/tt-runstore.h"
#include "session/tt-session.h"
#include "block/aio.h"
#include "qemu/main-loop.h"
#include "qemu/thread.h"

typedef struct Going {
    TtNodeId id;
    char *image;                    /* as the checkpoint names it */
    uint32_t version;               /* 0: a copy */
} Going;

static GMutex lock;
static GArray *going, *gone;        /* Going; under the lock */
static uint64_t shared_pos;         /* versions up to there stay */
static uint64_t kept_bytes;         /* by versions, as it was lately */

static bool is_over, told_over;     /* it is more than it may be, and nothing can go */

#define PLAIN_AT_ONCE   2           /* checkpoints: see tt_cpdisks_limit */

static void add(TtNodeId id, const TtFullDesc *d)
{
    bool versions_stay = tt_session.manifest.features & TT_FEATURE_DISKS;

    g_mutex_lock(&lock);
    going = going ?: g_array_new(false, false, sizeof(Going));
    for (unsigned i = 0; i < d->n_disks; i++) {
        Going g = {
            .id = id, .image = g_strdup(d->disks[i].image),
            .version = d->disks[i].version,
        };

        if (d->disks[i].is_writable && !(g.version && versions_stay)) {
            g_array_append_val(going, g);
        } else {
            g_free(g.image);
        }
    }
    g_mutex_unlock(&lock);
}

/* @blob: of checkpoint @id, or of one that has none (0). */
static void add_blob(TtNodeId id, TtBytes blob)
{
    TtFullDesc d = { 0 };
    TtCpState s;

    if (tt_cpstate_decode(blob, &s, NULL) == TT_OK &&
        tt_fulldesc_find(s.full, &d, NULL) == TT_OK) {
        add(id, &d);
    }
    tt_fulldesc_cleanup(&d);
}

void tt_cpdisks_going(TtPageStore *store, TtNodeId id)
{
    g_autofree void *blob = NULL;
    TtCheckpointInfo info;
    size_t len;

    if (tt_pagestore_info(store, id, &info) && info.flags & TT_CHECKPOINT_FULL &&
        info.pos > qatomic_read(&shared_pos) &&
        tt_pagestore_blob(store, id, &blob, &len, NULL) == TT_OK && blob) {
        add_blob(id, (TtBytes) { blob, len });
    }
}

void tt_cpdisks_not_stored(const TtCheckpointMeta *meta)
{
    if (meta->flags & TT_CHECKPOINT_FULL) {
        add_blob(0, (TtBytes) { meta->blob, meta->blob_bytes });
    }
}

void tt_cpdisks_all_going(TtPageStore *store)
{
    size_t n = tt_pagestore_count(store);
    g_autofree TtCheckpointInfo *infos = g_new0(TtCheckpointInfo, n + 1);

    n = tt_pagestore_list(store, infos, n);
    for (size_t i = 0; i < n; i++) {
        tt_cpdisks_going(store, infos[i].id);
    }
}

/* ---- what they keep is limited ---- */

static bool any_plain;              /* that were full, in this recording */
static int deciding = -1;           /* the lock, see below */

void tt_cpdisks_decided(void)
{
    tt_runlock_drop(deciding);
    deciding = -1;
}

static void decide(void)
{
    g_autofree char *points = g_build_filename(tt_session.dir, "checkpoints", NULL);

    if (deciding >= 0 && !tt_runlock_is_at(deciding, points)) {
        tt_cpdisks_decided();           /* the file was written anew, with all of it */
    }
    if (deciding < 0) {
        deciding = tt_runlock_decide(tt_session.dir);
    }
}

/*
 * Is there a branch that needs checkpoint @id? If not, it may be let go.
 *
 * A branch that is being made is another process. It and this one do two things each, and
 * whatever the order, one of the two sees the other:
 *
 *   this one   L  locks (tt_runlock_decide), then looks for manifests of branches;
 *              D  writes the decision to disk, then unlocks. Only then versions of disks
 *                 are deleted, after another look (tt_cpdisks_collect).
 *   a branch   M  writes its manifest;
 *              P  waits until nobody holds the lock, then opens the store again: is the
 *                 checkpoint still there, and full? If not, it ends (tt-branch.c).
 *
 * If M comes before L, this one finds the manifest, and the checkpoint stays. Else M, and
 * so P, comes after L: P waits for the unlocking, which comes after D, and finds what was
 * decided. Without the lock P could come between L and D: then the branch would go on, and
 * its replay would lack RAM. If this process dies while it holds the lock, the lock is
 * gone, and the files stay as P finds them. A deletion (of versions) that begins before M
 * is found by P, too; one after M finds the manifest.
 *
 * The lock is held for as long as the files are behind: the disk may be full.
 */
static bool has_branch(TtPageStore *store, TtNodeId id)
{
    g_autofree char *branch = NULL;
    TtCheckpointInfo info;

    if (tt_pagestore_info(store, id, &info) &&
        (info.flags & TT_CHECKPOINT_FULL || any_plain)) {
        decide();
        branch = tt_runstore_branch_of(tt_session.dir, tt_session.manifest.uuid, id);
    }
    return branch;
}

bool tt_cpdisks_has_branch(TtPageStore *store, TtNodeId id)
{
    return !tt_flight_is_on() && has_branch(store, id);
}

bool tt_cpdisks_is_wanted(TtPageStore *store, const TtCheckpointInfo *info)
{
    return info->flags & TT_CHECKPOINT_PINNED || tt_cpdisks_has_branch(store, info->id);
}

bool tt_cpdisks_has_wanted(TtPageStore *store)
{
    size_t n = tt_pagestore_count(store);
    g_autofree TtCheckpointInfo *infos = g_new0(TtCheckpointInfo, n + 1);
    bool any = tt_cplist_has_pinned();

    n = tt_pagestore_list(store, infos, n);
    for (size_t i = 0; i < n && !any; i++) {
        any = tt_cpdisks_is_wanted(store, &infos[i]);
    }
    return any;
}

/* Its version of each disk goes, RAM stays. A branch that starts there needs both. */
static bool make_plain(TtPageStore *store, const TtCheckpointInfo *info)
{
    if (info->flags & TT_CHECKPOINT_PINNED || !(info->flags & TT_CHECKPOINT_FULL) ||
        info->pos <= qatomic_read(&shared_pos) || tt_cplist_is_spared(info->id) ||
        has_branch(store, info->id)) {
        return false;
    }
    any_plain = true;
    tt_cpdisks_going(store, info->id);
    tt_pagestore_set_flags(store, info->id, info->flags & ~TT_CHECKPOINT_FULL);
    tt_cplist_show(store, info->id);
    return true;
}

static bool is_automatic(const TtCheckpointInfo *info)
{
    return info->flags & TT_CHECKPOINT_FULL && !(info->flags & TT_CHECKPOINT_PINNED);
}

/* How many may become plain: the newest stay, with the one that comes. */
static size_t count_old(const TtCheckpointInfo *infos, size_t n)
{
    size_t full = 1;

    for (size_t i = 0; i < n; i++) {
        full += is_automatic(&infos[i]);
    }
    return full - MIN(full, TT_CPDISKS_STAY);
}

/* What only the oldest version has was overwritten before the next one: about as much as
 * is overwritten now. Two go for each that comes, so it becomes less. If it does not, what
 * must stay keeps too much: then the newest ones are full all the same. */
void tt_cpdisks_limit(TtPageStore *store, uint64_t max_bytes)
{
    size_t n = tt_pagestore_count(store);
    g_autofree TtCheckpointInfo *infos = NULL;
    unsigned left = PLAIN_AT_ONCE;
    size_t old;

    if (!max_bytes || qatomic_read(&kept_bytes) <= max_bytes ||
        tt_session.manifest.features & TT_FEATURE_DISKS) {
        return;
    }
    infos = g_new0(TtCheckpointInfo, n + 1);
    n = tt_pagestore_list(store, infos, n);
    old = count_old(infos, n);
    for (size_t i = 0; old && left; i++) {
        old -= is_automatic(&infos[i]);
        left -= make_plain(store, &infos[i]);
    }
    if (left) {
        qatomic_set(&is_over, true);
    }
}

bool tt_cpdisks_is_over(void)
{
    bool is_new = qatomic_read(&is_over) && !told_over;

    told_over |= is_new;
    return is_new;
}

void tt_cpdisks_note(uint64_t bytes)
{
    qatomic_set(&kept_bytes, bytes);
}

/* ---- collecting ---- */

/*
 * It may run within any wait of the main loop (a drain, a write of another device): that is
 * harmless. It changes no node and no edge of the block graph, which others may be walking;
 * it starts no request and waits for none, so it ends a drain neither late nor early, and
 * cannot be nested in itself. What it deletes is gone from the maps at once, under their
 * lock: requests under way allow for that (tt_blockmap_version_delete, n_deleted in
 * tt-blkio.c). And nobody who waits counts on these versions: their checkpoints are gone
 * from the files, pending ones are others (tt_disks_are_pending is asked all the same, since
 * it counts what is kept), and the one that is about to be restored is spared
 * (tt_cplist_spare), as are those of branches.
 */
static void collect_now(void *opaque)
{
    tt_cpdisks_collect();
}

bool tt_cpdisks_are_going(void)
{
    bool any;

    g_mutex_lock(&lock);
    any = going && going->len;
    g_mutex_unlock(&lock);
    return any;
}

void tt_cpdisks_gone(void)
{
    bool any;

    g_mutex_lock(&lock);
    any = going && going->len;
    if (any) {
        gone = gone ?: g_array_new(false, false, sizeof(Going));
        g_array_append_vals(gone, going->data, going->len);
        g_array_set_size(going, 0);
    }
    g_mutex_unlock(&lock);
    if (any) {
        aio_bh_schedule_oneshot(qemu_get_aio_context(), collect_now, NULL);
    }
}

void tt_cpdisks_are_shared(uint64_t pos)
{
    qatomic_set(&shared_pos, pos);
}

static GArray *take(GArray **list)
{
    GArray *all;

    g_mutex_lock(&lock);
    all = g_steal_pointer(list);
    g_mutex_unlock(&lock);
    return all;
}

void tt_cpdisks_collect(void)
{
    g_autoptr(GArray) all = NULL;

    if (tt_disks_are_pending()) {
        return;                     /* their end calls this again */
    }
    if (!tt_session.dir) {
        tt_cpdisks_forget();        /* the recording ended meanwhile */
        return;
    }
    all = take(&gone);
    for (unsigned i = 0; all && i < all->len; i++) {
        Going *g = &g_array_index(all, Going, i);
        g_autofree char *branch = !g->id ? NULL :
            tt_runstore_branch_of(tt_session.dir, tt_session.manifest.uuid, g->id);

        if (!branch) {
            tt_disks_forget(g->image, g->version);
        }
        g_free(g->image);
    }
    tt_cpdisks_note(tt_disks_kept_bytes());
}

static void drop(GArray *all)
{
    for (unsigned i = 0; all && i < all->len; i++) {
        g_free(g_array_index(all, Going, i).image);
    }
    if (all) {
        g_array_unref(all);
    }
}

void tt_cpdisks_forget(void)
{
    drop(take(&going));
    drop(take(&gone));
    qatomic_set(&shared_pos, 0);
    qatomic_set(&kept_bytes, 0);
    qatomic_set(&is_over, false);
    told_over = false;
    any_plain = false;
    tt_cpdisks_decided();
}
