/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The run that a branch began in: which of its checkpoints is meant, and the
 * RAM of that. Opened for reading only; nothing here changes a file.
 */
#include "qemu/osdep.h"
#include "hw-tt/state/tt-parent.h"
#include "hw-tt/memory/tt-block.h"
#include "io/tt-base.h"
#include "pages/tt-page.h"
#include "pages/tt-pagestore.h"
#include "run/tt-cpstate.h"
#include "run/tt-fullstate.h"
#include "run/tt-manifest.h"
#include "run/tt-runfull.h"
#include "run/tt-runstore.h"
#include "session/tt-paths.h"
#include "qapi/error.h"
#include "qemu/bitmap.h"
#include "qemu/cutils.h"
#include "qemu/uuid.h"

#define CACHE_BYTES (64u << 20)

/* ---- opening ---- */

TtParent *tt_parent_open(const char *dir, Error **errp)
{
    TtParent *p = g_new0(TtParent, 1);
    g_autofree char *manifest = g_build_filename(dir, "manifest", NULL);
    TtDiag diag;

    p->dir = tt_path_absolute(dir);
    if (tt_manifest_load(manifest, &p->manifest, &diag) != TT_OK) {
        error_setg(errp, "%s", diag.text);
    } else if (tt_runstore_open(p->dir, &p->manifest, CACHE_BYTES, &p->store,
                                &diag) != TT_OK) {
        error_setg(errp, "the run '%s' has no checkpoints that can be read: %s",
                   dir, diag.text);
    } else {
        return p;
    }
    tt_parent_close(p);
    return NULL;
}

void tt_parent_close(TtParent *p)
{
    if (p) {
        tt_pagestore_free(p->store);
        tt_manifest_cleanup(&p->manifest);
        g_free(p->blob);
        g_free(p->dir);
        g_free(p);
    }
}

/* ---- which checkpoint ---- */

bool tt_parent_choose(TtParent *p, uint32_t id, Error **errp)
{
    TtDiag diag;
    size_t len;

    if (!tt_pagestore_info(p->store, id, &p->info)) {
        error_setg(errp, "the run '%s' no longer has checkpoint %" PRIu32, p->dir, id);
        return false;
    }
    g_clear_pointer(&p->blob, g_free);
    if (tt_pagestore_blob(p->store, id, &p->blob, &len, &diag) != TT_OK ||
        tt_cpstate_decode((TtBytes) { p->blob, len }, &p->state, &diag) !=
        TT_OK) {
        error_setg(errp, "checkpoint %" PRIu32 " of '%s': %s", id, p->dir,
                   diag.text);
        return false;
    }
    return true;
}

bool tt_parent_find(TtParent *p, const char *at, Error **errp)
{
    TtDiag diag;
    uint32_t id;

    if (tt_runfull_find(p->dir, p->store, at, &id, &diag) != TT_OK) {
        error_setg(errp, "%s", diag.text);
        return false;
    }
    return tt_parent_choose(p, id, errp);
}

TtParent *tt_parent_of(const TtManifest *m, const char *dir, Error **errp)
{
    TtDiag diag;
    g_autofree char *path = tt_runstore_parent_dir(m, dir, &diag);
    Error *err = NULL;
    TtParent *p = path ? tt_parent_open(path, &err) : NULL;

    if (p && tt_runstore_check_parent(m, &p->manifest, p->store, &diag) ==
        TT_OK && tt_parent_choose(p, m->parent_checkpoint, &err)) {
        return p;
    }
    error_setg(errp, "the run is a branch and begins with RAM of checkpoint %"
               PRIu32 " of its parent '%s', which cannot be read (restore it to "
               "that place): %s", m->parent_checkpoint,
               tt_printable(path ?: m->parent_path), err ? error_get_pretty(err) : diag.text);
    error_free(err);
    tt_parent_close(p);
    return NULL;
}

/* ---- RAM ---- */

typedef struct Shift {
    uint64_t first;
    TtPagePut put;
    void *opaque;
} Shift;

static void put_shifted(void *opaque, uint64_t page, const void *bytes)
{
    Shift *s = opaque;

    s->put(s->opaque, page - s->first, bytes);
}

TtStatus tt_parent_read(TtParent *p, const char *block, uint64_t size_bytes,
                        TtPagePut put, void *opaque)
{
    TtBytes rest = p->state.blocks;
    Shift s = { .put = put, .opaque = opaque };
    uint64_t n_pages;
    TtCpBlock b;

    while (tt_cpstate_next_block(&rest, &b)) {
        if (b.size_bytes > TT_BLOCK_BYTES_MAX) {
            break;
        }
        n_pages = DIV_ROUND_UP(b.size_bytes, TT_PAGE_BYTES);
        if (b.name.len == strlen(block) &&
            !memcmp(b.name.data, block, b.name.len)) {
            return b.size_bytes == size_bytes ?
                tt_pagestore_read(p->store, p->info.id, s.first, n_pages,
                                  put_shifted, &s) : TT_END;
        }
        s.first += n_pages;
    }
    return TT_END;
}

typedef struct Walk {
    uint8_t *host;
    uint64_t next;              /* page: all before it are dealt with */
    unsigned long *differs;
} Walk;

/* Pages that are not put are zero; blocks are allocated in whole pages. */
static void walk_zeros(Walk *w, uint64_t end)
{
    for (; w->next < end; w->next++) {
        uint8_t *page = w->host + w->next * TT_PAGE_BYTES;

        if (buffer_is_zero(page, TT_PAGE_BYTES)) {
            continue;
        }
        if (w->differs) {
            set_bit(w->next, w->differs);
        } else {
            memset(page, 0, TT_PAGE_BYTES);
        }
    }
}

static void fill_page(void *opaque, uint64_t page, const void *bytes)
{
    Walk *w = opaque;

    walk_zeros(w, page);
    memcpy(w->host + page * TT_PAGE_BYTES, bytes, TT_PAGE_BYTES);
    w->next = page + 1;
}

static void compare_page(void *opaque, uint64_t page, const void *bytes)
{
    Walk *w = opaque;

    walk_zeros(w, page);
    if (memcmp(w->host + page * TT_PAGE_BYTES, bytes, TT_PAGE_BYTES)) {
        set_bit(page, w->differs);
    }
    w->next = page + 1;
}

TtStatus tt_parent_fill(TtParent *p, const char *block, uint64_t size_bytes,
                        uint8_t *host)
{
    Walk w = { .host = host };
    TtStatus s = tt_parent_read(p, block, size_bytes, fill_page, &w);

    if (s >= 0) {
        walk_zeros(&w, DIV_ROUND_UP(size_bytes, TT_PAGE_BYTES));
    }
    return s;
}

unsigned long *tt_parent_compare(TtParent *p, const TtBlock *b)
{
    uint64_t n = DIV_ROUND_UP(b->size_bytes, TT_PAGE_BYTES);
    Walk w = { .host = b->host, .differs = bitmap_try_new(n) };
    TtStatus s = w.differs ? tt_parent_read(p, b->name, b->size_bytes,
                                            compare_page, &w) : TT_ERR_NOMEM;

    if (s != TT_OK) {
        g_free(w.differs);
        return NULL;
    }
    walk_zeros(&w, n);
    return w.differs;
}
