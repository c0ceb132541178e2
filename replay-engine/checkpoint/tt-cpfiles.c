/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The files of a recording's checkpoints, RUN/pages and RUN/checkpoints: what is added
 * to them, and which checkpoints go again. Owns the page store.
 *
 * When the disk is full no more are made, and the files go, since the log needs the
 * space more; but if the user added checkpoints, those stay, and only the others go.
 *
 * With a cap checkpoints are thinned before one is added: dense near the present, sparse
 * far away, and never those of the user or the first. When one has no room all the same,
 * the store is *over*: who posted the job deletes it, and knows where RAM comes from then.
 */
#include "qemu/osdep.h"
#include "checkpoint/tt-cpfiles.h"
#include "checkpoint/tt-cpdisks.h"
#include "checkpoint/tt-cplist.h"
#include "io/tt-base.h"
#include "io/tt-io.h"
#include "pages/tt-page.h"
#include "pages/tt-pagestore.h"
#include "record/tt-flight.h"
#include "record/tt-rundir.h"
#include "run/tt-runstore.h"
#include "session/tt-checkpoint.h"
#include "session/tt-session.h"
#include "timeline/tt-timeline.h"
#include "qemu/atomic.h"

#define CACHE_BYTES     (64u << 20)     /* stored pages kept for comparison */
#define LISTED_BYTES    6               /* of a page in the journal, at most */
#define HOLES_BYTES     (256u << 20)    /* of the file, that do not matter */
#define POINTS_FEW      8               /* in a window */

static struct {
    TtPageStore *store;             /* NULL: it has given way, or is closed */
    TtTimeline *timeline;           /* for thinning */
    TtNodeId base;
    uint64_t max_bytes;             /* of the files; 0: no cap */
    uint64_t lately_bytes, lately_pages;    /* written, for how many */
    /* what was added last */
    uint64_t pos;
    bool has_batch;
    size_t n_pages;                 /* in the batch */
    /* what others ask about */
    bool failed;
    bool over;                      /* the newest one has no room */
    unsigned n_over;                /* so many in turn */
    bool has_shrunk;                /* the window, since somebody was told */
    bool told;                      /* of diag, by tt_cpfiles_problem */
    TtDiag diag;
    uint64_t count, bytes;
} fs;

/* ---- what others may know: see tt-cplist.h, too ---- */

/* The new one is on disk, or will be. */
static void enter(TtNodeId id, bool must_stay)
{
    TtCheckpointInfo info;

    if (tt_pagestore_info(fs.store, id, &info)) {
        tt_timeline_add(fs.timeline, id, info.pos,
                        info.flags & TT_CHECKPOINT_PINNED || must_stay);
        tt_cplist_show(fs.store, id);
        tt_flight_enter(id);
    }
}

static void drop(TtNodeId id)
{
    tt_cpdisks_going(fs.store, id);
    tt_pagestore_delete(fs.store, id);
    tt_flight_forget(id);
    if (tt_cplist_remove(fs.store, id)) {
        tt_timeline_remove(fs.timeline, id);
    }
}

/* A checkpoint that a power cut could bring back keeps its versions of disks. */
static void let_disks_go(void)
{
    if (tt_cpdisks_are_going() &&
        (!fs.store || (tt_pagestore_flush(fs.store, NULL) == TT_OK &&
                       tt_pagestore_sync(fs.store, NULL) == TT_OK))) {
        tt_cpdisks_gone();
    }
}

void tt_cpfiles_note(void)
{
    TtPageStoreStats st = fs.store ? tt_pagestore_stats(fs.store) :
        (TtPageStoreStats) { 0 };

    if (!st.is_behind) {
        let_disks_go();
        tt_cpdisks_decided();
    }
    qatomic_set(&fs.bytes, st.stored_bytes + st.journal_bytes);
    qatomic_set(&fs.count, fs.store ? tt_pagestore_count(fs.store) : 0);
}

/* ---- what goes ---- */

/* A flight recorder moves its window. The log before it goes when the disk has what
 * a replay of the rest needs. */
TtStatus tt_cpfiles_move(void)
{
    TtStatus s = TT_OK;
    bool any = false;
    TtNodeId id;

    while ((id = tt_flight_surplus())) {
        drop(id);
        any = true;
    }
    if (any) {
        s = tt_pagestore_flush(fs.store, &fs.diag);
    }
    if (s == TT_OK && tt_flight_has_spent() &&
        !tt_pagestore_stats(fs.store).is_behind) {
        s = tt_pagestore_sync(fs.store, &fs.diag);
        if (s == TT_OK) {
            tt_flight_drop_parts();
        }
    }
    if (s == TT_OK) {
        tt_pagestore_renew(fs.store, HOLES_BYTES);
    }
    return s;
}

/* The disk is full: of a window, what the newest checkpoint needs stays that is on
 * disk, whatever a flush could not write. */
static bool shrink_window(void)
{
    TtCheckpointInfo info;
    TtDiag unused;
    TtNodeId id, next;
    bool any = false;

    while ((id = tt_flight_oldest(&next)) &&
           tt_pagestore_info(fs.store, next, &info) && info.is_flushed) {
        drop(id);
        any = true;
    }
    if (tt_pagestore_sync(fs.store, &unused) == TT_OK) {
        any |= tt_flight_drop_parts();
    }
    if (any) {
        qatomic_set(&fs.has_shrunk, true);
    }
    return any && tt_pagestore_flush(fs.store, &unused) == TT_OK;
}

static void give_way(const char *why)
{
    g_autofree char *pages = g_build_filename(tt_session.dir, "pages", NULL);
    g_autofree char *points = g_build_filename(tt_session.dir, "checkpoints", NULL);

    tt_rundir_has_points(false);
    if (tt_rundir_is_ours()) {
        if (unlink(points) == 0) {      /* else they still need their disks */
            tt_cpdisks_all_going(fs.store);
        }
        unlink(pages);
        tt_io_posix_sync_directory_of(points);
    }
    tt_pagestore_free(fs.store);
    fs.store = NULL;
    tt_cplist_clear();
    tt_fail(&fs.diag, TT_ERR_NOSPACE, "%s", why);
    qatomic_set(&fs.failed, true);
}

/* The log of a window is nothing without them. */
static bool may_give_way(void)
{
    return tt_flight_oldest_part() <= 1;
}

/* All but the first, those that are wanted, and the one that RAM comes from. */
static bool drop_automatic(void)
{
    size_t n = tt_pagestore_count(fs.store);
    g_autofree TtCheckpointInfo *infos = g_new0(TtCheckpointInfo, n + 1);
    bool any = false;

    n = tt_pagestore_list(fs.store, infos, n);
    for (size_t i = 1; i < n; i++) {
        if (infos[i].id != fs.base && !tt_cpdisks_is_wanted(fs.store, &infos[i])) {
            drop(infos[i].id);
            any = true;
        }
    }
    return any;
}

/* The disk is full, and some of them are wanted. Was space given back? */
static bool keep_wanted(void)
{
    TtDiag unused;
    bool any = drop_automatic() &&
        tt_pagestore_flush(fs.store, &unused) == TT_OK;

    tt_fail(&fs.diag, TT_ERR_NOSPACE, "the disk is full; the checkpoints that you added "
            "are kept, and those where a branch starts");
    qatomic_set(&fs.failed, true);
    return any;
}

/* ---- what is added ---- */

static const char disk_is_full[] =
    "the disk is full, and the space of the checkpoints is given to the log";

/* What so many pages will take, by what others took lately; many a page that was
 * written is as it was, or as another. */
static uint64_t expected_bytes(size_t n_pages, const TtCheckpointMeta *meta)
{
    uint64_t each = (fs.lately_bytes << 8) / MAX(fs.lately_pages, 1);

    return (n_pages * (each + each / 2) >> 8) + n_pages * LISTED_BYTES +
        meta->blob_bytes;
}

static void note_growth(uint64_t before, size_t pages)
{
    uint64_t after = tt_pagestore_stats(fs.store).pages_file_bytes;

    fs.lately_bytes = fs.lately_bytes / 4 * 3 + after - MIN(before, after);
    fs.lately_pages = fs.lately_pages / 4 * 3 + pages;
}

/*
 * Which one is missed least; 0: none. A window wants them evenly spread, since it
 * begins with the oldest and that goes; when they are few, it rather gets shorter.
 */
static TtNodeId victim(void)
{
    TtNodeId id, next;

    if (!tt_flight_is_on()) {
        id = tt_timeline_thin(fs.timeline, fs.pos, 0);
    } else if (tt_pagestore_count(fs.store) > POINTS_FEW) {
        id = tt_timeline_thin(fs.timeline, fs.pos,
                              fs.pos - MIN(tt_flight_start(), fs.pos));
    } else {
        id = tt_flight_oldest(&next);
    }
    return id != fs.base ? id : 0;
}

static void make_space(uint64_t bytes)
{
    TtNodeId id;
    bool thinned = false;

    while (tt_pagestore_wants_thinning(fs.store, bytes) && (id = victim())) {
        if (tt_cplist_is_spared(id) || tt_cpdisks_has_branch(fs.store, id)) {
            tt_timeline_remove(fs.timeline, id);
            enter(id, true);            /* pinned from now on */
            continue;
        }
        drop(id);
        thinned = true;
    }
    if (!thinned || tt_pagestore_flush(fs.store, &fs.diag) == TT_OK) {
        tt_pagestore_make_room(fs.store, bytes, NULL);
    }
}

TtStatus tt_cpfiles_add(uint64_t pos, TtPageBatch *batch, const TtCheckpointMeta *meta)
{
    TtStatus s = TT_OK;

    fs.pos = pos;
    fs.has_batch = batch;
    if (batch) {
        fs.n_pages = tt_pagebatch_count(batch);
        make_space(expected_bytes(fs.n_pages, meta));
        tt_cpdisks_limit(fs.store, fs.max_bytes);
        s = tt_pagestore_add_batch(fs.store, pos, fs.base, batch, meta, &fs.base);
    }
    if (s != TT_OK) {
        tt_fail(&fs.diag, s, "%s", tt_status_name(s));
        qatomic_set(&fs.failed, true);
    }
    return s;
}

/* The first one is not to be deleted. */
static void advise(void)
{
    g_autoptr(GArray) all = tt_cplist_list();

    if (fs.max_bytes && all->len > 1) {
        tt_fail(&fs.diag, TT_ERR_LIMIT, "max-size leaves no room for this checkpoint: "
                "delete others, or record with a larger max-size");
    }
}

TtStatus tt_cpfiles_flush(bool is_new)
{
    uint64_t before = tt_pagestore_stats(fs.store).pages_file_bytes;
    TtStatus s = tt_pagestore_flush(fs.store, &fs.diag);
    bool first = tt_pagestore_count(fs.store) == 1;

    if (s == TT_ERR_NOSPACE && tt_flight_is_on() && shrink_window()) {
        s = TT_OK;                  /* with what was to be written */
    }
    if (s == TT_ERR_NOSPACE && may_give_way()) {
        if (tt_cpdisks_has_wanted(fs.store)) {
            keep_wanted();
        } else {
            give_way(disk_is_full);
        }
        return s;
    }
    if (s == TT_ERR_LIMIT && first && may_give_way()) {
        give_way("max-size is too small for checkpoints");
        return s;
    }
    qatomic_set(&fs.over, s == TT_ERR_LIMIT);
    if (s == TT_ERR_LIMIT) {
        advise();
        fs.n_over++;
    } else if (s < 0) {             /* it says so once, and tries again later */
        qatomic_set(&fs.told, false);
    }
    if (is_new && s != TT_ERR_LIMIT) {
        fs.n_over = 0;
        enter(fs.base, false);
        if (fs.has_batch) {
            note_growth(before, fs.n_pages);
        }
        if (s == TT_OK) {
            s = tt_cpfiles_move();
        }
    }
    return s;
}

TtStatus tt_cpfiles_delete(TtNodeId id)
{
    TtStatus s;

    drop(id);
    s = tt_cpfiles_flush(false);
    if (s == TT_OK && fs.n_over) {  /* what was written in vain goes */
        tt_pagestore_make_room(fs.store, UINT32_MAX, NULL);
    }
    return s;
}

bool tt_cpfiles_give_room(void)
{
    bool any = fs.store;

    if (!fs.store) {
        return false;
    }
    if (tt_flight_is_on()) {
        any = shrink_window();
    } else if (tt_cpdisks_has_wanted(fs.store)) {
        any = keep_wanted();
    } else {
        give_way(disk_is_full);
    }
    tt_cpfiles_note();
    return any;
}

void tt_cpfiles_flush_behind(void)
{
    TtDiag unused;

    if (fs.store && tt_pagestore_stats(fs.store).is_behind) {
        tt_pagestore_flush(fs.store, &unused);
    }
}

/* ---- what others ask about ---- */

TtPageStore *tt_cpfiles_store(void)
{
    return fs.store;
}

const TtDiag *tt_cpfiles_diag(void)
{
    return &fs.diag;
}

unsigned tt_cpfiles_is_over(void)
{
    return qatomic_read(&fs.over) ? fs.n_over : 0;
}

bool tt_cpfiles_has_failed(const char **why)
{
    *why = fs.diag.text;
    return qatomic_read(&fs.failed);
}

const char *tt_cpfiles_problem(void)
{
    return !qatomic_xchg(&fs.told, true) && fs.diag.status ? fs.diag.text : NULL;
}

bool tt_cpfiles_has_shrunk(void)
{
    return qatomic_xchg(&fs.has_shrunk, false);
}

TtNodeId tt_cpfiles_base(void)
{
    return fs.base;
}

void tt_cpfiles_set_base(TtNodeId id)
{
    fs.base = id;
}

uint64_t tt_cpfiles_count(void)
{
    return qatomic_read(&fs.count);
}

uint64_t tt_cpfiles_bytes(void)
{
    return qatomic_read(&fs.bytes);
}

/* ---- start and end ---- */

static TtIo *create(const char *name, TtDiag *diag)
{
    g_autofree char *path = g_build_filename(tt_session.dir, name, NULL);
    TtIo *io;

    return tt_io_posix_create(path, &io, diag) == TT_OK ? io : NULL;
}

static void discard(const char *name)
{
    g_autofree char *path = g_build_filename(tt_session.dir, name, NULL);
    unlink(path);
}

static bool open_store(uint64_t max_bytes, TtDiag *diag)
{
    TtPageStoreOptions opt = { .cache_bytes = CACHE_BYTES, .max_bytes = max_bytes };

    memcpy(opt.uuid, tt_session.manifest.uuid, sizeof(opt.uuid));
    opt.pages = create("pages", diag);
    opt.checkpoints = opt.pages ? create("checkpoints", diag) : NULL;
    if (opt.checkpoints) {
        tt_runstore_set_origin(&opt, &tt_session.manifest, tt_session.dir);
        if (tt_pagestore_create(&opt, &fs.store, diag) == TT_OK) {
            return true;
        }
        discard("checkpoints");
    } else if (opt.pages) {
        tt_io_close(opt.pages);
    }
    if (opt.pages) {
        discard("pages");
    }
    return false;
}

void tt_cpfiles_forget(void)
{
    tt_cplist_clear();
    memset(&fs, 0, sizeof(fs));
}

bool tt_cpfiles_open(uint64_t max_bytes, TtDiag *diag)
{
    if (!open_store(max_bytes, diag)) {
        return false;
    }
    fs.timeline = tt_timeline_new();
    fs.max_bytes = max_bytes;
    fs.lately_bytes = 512 << 10;    /* a first guess */
    fs.lately_pages = 1 << 10;
    return true;
}

void tt_cpfiles_close(void)
{
    tt_cpfiles_flush_behind();
    tt_cpfiles_note();
    tt_cpdisks_decided();           /* whatever the files say now */
    tt_pagestore_free(fs.store);
    fs.store = NULL;
    tt_timeline_free(fs.timeline);
    fs.timeline = NULL;
}
