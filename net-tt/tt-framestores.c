/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The frame stores of a group: which one has a frame that a log names, and what is said
 * when none does.
 */
#include "net-tt/tt-framestore.h"

#include <errno.h>
#include <glib.h>
#include <inttypes.h>

#define OPEN_MAX    64          /* files: of the runs that a receiver tells apart */
#define KNOWN_MAX   1024        /* runs: what was found out about them */

/* One run. */
typedef struct Known {
    uint8_t run[TT_RUN_BYTES];
    TtFrameStore *store;        /* NULL: why */
    TtDiag why;
} Known;

struct TtFrameStores {
    char *dir;
    GQueue known;               /* of Known, by last use, the latest first */
    unsigned n_open;            /* stores that do not rest */
};

TtFrameStores *tt_framestores_new(const char *dir)
{
    TtFrameStores *all = g_new0(TtFrameStores, 1);

    all->dir = g_strdup(dir);
    return all;
}

static void rest(TtFrameStores *all, Known *k)
{
    if (k->store && !tt_framestore_rests(k->store)) {
        tt_framestore_rest(k->store);
        all->n_open--;
    }
}

static void forget(TtFrameStores *all, Known *k)
{
    rest(all, k);
    tt_framestore_free(k->store);
    g_free(k);
}

void tt_framestores_free(TtFrameStores *all)
{
    Known *k;

    if (all) {
        while ((k = g_queue_pop_head(&all->known))) {
            forget(all, k);
        }
        g_free(all->dir);
        g_free(all);
    }
}

/* As in the run's manifest: g_free. */
static char *uuid_of(const uint8_t run[TT_RUN_BYTES])
{
    char t[2 * TT_RUN_BYTES + 1];

    tt_run_text(t, run);
    return g_strdup_printf("%.8s-%.4s-%.4s-%.4s-%s", t, t + 8, t + 12, t + 16, t + 20);
}

char *tt_framestores_path(const char *dir, const uint8_t run[TT_RUN_BYTES])
{
    g_autofree char *uuid = uuid_of(run), *name = g_strconcat(uuid, TT_FRAMESTORE_SUFFIX,
                                                              NULL);

    return g_build_filename(dir, name, NULL);
}

/* One file more may be open. */
static void make_room(TtFrameStores *all)
{
    for (GList *i = all->known.tail; i && all->n_open >= OPEN_MAX; i = i->prev) {
        rest(all, i->data);
    }
}

/* If it fails, what was known of its frames is forgotten: it may be another file next. */
static void open_it(TtFrameStores *all, Known *k)
{
    g_autofree char *path = tt_framestores_path(all->dir, k->run);
    TtStatus st;
    TtIo *io;

    make_room(all);
    st = tt_io_posix_open(path, &io, &k->why);
    if (st == TT_OK) {
        st = k->store ? tt_framestore_resume(k->store, io, k->run, &k->why) :
            tt_framestore_open(io, k->run, &k->store, &k->why);
    }
    if (st == TT_OK) {
        all->n_open++;
    } else {
        g_clear_pointer(&k->store, tt_framestore_free);
    }
}

/* It is open, or has no store. */
static Known *known_of(TtFrameStores *all, const uint8_t run[TT_RUN_BYTES])
{
    Known *k;

    for (GList *i = all->known.head; i; i = i->next) {
        k = i->data;
        if (!memcmp(k->run, run, TT_RUN_BYTES)) {
            if (i != all->known.head) {
                g_queue_unlink(&all->known, i);
                g_queue_push_head_link(&all->known, i);
            }
            if (k->store && tt_framestore_rests(k->store)) {
                open_it(all, k);
            }
            return k;
        }
    }
    if (all->known.length == KNOWN_MAX) {
        forget(all, g_queue_pop_tail(&all->known));
    }
    k = g_new0(Known, 1);
    memcpy(k->run, run, TT_RUN_BYTES);
    g_queue_push_head(&all->known, k);
    open_it(all, k);
    return k;
}

bool tt_framestores_have(TtFrameStores *all, const TtFrame *f)
{
    TtFrameStore *s = known_of(all, f->run)->store;
    TtFrameEntry e;

    return s && tt_framestore_find(s, f->seq, &e, NULL) == TT_OK && e.hash == f->hash &&
        e.len == f->len;
}

/* The sentence: which frame, where it should be, why it cannot be had. */
static TtStatus say(const TtFrameStores *all, const TtFramePart *p, TtStatus st,
                    const TtDiag *why, TtDiag *diag)
{
    g_autofree char *run = uuid_of(p->run), *name = g_path_get_basename(all->dir);

    if (st == TT_ERR_IO && why->os_errno == ENOENT) {
        return tt_fail(diag, TT_ERR_IO, "what arrives here is frame %" PRIu64 " of run %s, "
                       "whose frame store is missing in '%.40s': put it back", p->seq, run,
                       name);
    }
    if (st == TT_ERR_IO) {              /* a path may be long: only what is wrong */
        return tt_fail(diag, TT_ERR_IO, "what arrives here is frame %" PRIu64 " of run %s, "
                       "whose frame store in '%.40s' cannot be read: %s", p->seq, run, name,
                       why->os_errno ? g_strerror(why->os_errno) : "it is not a regular file");
    }
    return tt_fail(diag, st == TT_END ? TT_ERR_FORMAT : st, "what arrives here is frame %"
                   PRIu64 " of run %s, and the frame store in '%.40s' does not have it: "
                   "%.70s", p->seq, run, name, why->text);
}

TtStatus tt_framestores_read(TtFrameStores *all, const TtFramePart *p, uint64_t bytes,
                             uint8_t *out, TtDiag *diag)
{
    Known *k = known_of(all, p->run);
    const uint8_t *data;
    uint32_t len;
    TtStatus st;
    TtDiag why;

    if (!k->store) {
        open_it(all, k);                /* it may have been put back */
    }
    why = k->why;
    st = k->store ? tt_framestore_read(k->store, p->seq, p->hash, &data, &len, &why) :
        why.status;

    if (st == TT_OK && (len < p->at || len - p->at < bytes)) {
        st = tt_fail(&why, TT_ERR_FORMAT, "it is shorter than the one that was received");
    }
    if (st != TT_OK) {
        return say(all, p, st, &why, diag);
    }
    memcpy(out, data + p->at, bytes);
    return TT_OK;
}
