/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Checkpoints of the recorder's, which stand at landmarks. Where the pass comes to one,
 * all of RAM is compared with it. Accessed and dirty bits of page tables, which hardware
 * and TCG set at other times, become those of the recorded machine, by events of the new
 * log: whoever begins at the checkpoint and whoever comes by have the same RAM. Anything
 * else that differs is a divergence.
 */
#include "qemu/osdep.h"
#include "tt-convert-part-int.h"
#include "tt-convert-parts-int.h"
#include "accel-tt/tt-position.h"
#include "hw-tt/memory/tt-memory.h"
#include "log/tt-landmark.h"
#include "pages/tt-pagestore.h"
#include "replay/tt-replay-exact.h"
#include "replay/tt-replay-log.h"
#include "run/tt-runstore.h"
#include "session/tt-session.h"
#include "log/tt-sched.h"
#include "qemu/error-report.h"
#include "qemu/units.h"

#define CACHE_BYTES (64 * MiB)

typedef struct Page {
    uint64_t number;
    uint8_t bytes[TT_PAGE_BYTES];       /* recorded */
} Page;

static struct {
    TtPageStore *store;
    TtCheckpointInfo *points;           /* by position */
    size_t n;
} rc;

void tt_convert_recorded_open(void)
{
    TtDiag diag;
    TtStatus s = tt_runstore_open(tt_session.dir, &tt_session.manifest, CACHE_BYTES,
                                  &rc.store, &diag);

    if (s != TT_OK) {
        if (s != TT_END) {
            warn_report("tt: the recorder's checkpoints are not compared: %s", diag.text);
        }
        rc.store = NULL;
        return;
    }
    rc.n = tt_pagestore_count(rc.store);
    rc.points = g_new0(TtCheckpointInfo, rc.n + 1);
    rc.n = tt_pagestore_list(rc.store, rc.points, rc.n);
}

uint64_t tt_convert_recorded_find(uint64_t exits_pos)
{
    for (size_t i = 1; i < rc.n; i++) {
        if (rc.points[i].pos == exits_pos) {
            return i;
        }
    }
    return 0;
}

bool tt_convert_recorded_restore(uint64_t index, TtDiag *diag)
{
    TtCursor at;

    if (index >= rc.n) {
        tt_fail(diag, TT_ERR_FORMAT, "there is no checkpoint %" PRIu64, index);
        return false;
    }
    return tt_convert_become(rc.store, rc.points[index].id, &at, diag) &&
        tt_sched_seek(tt_replay_sched(), at, diag) == TT_OK;
}

/* ---- pages for the new store ---- */

typedef struct Taking {
    TtPageBatch *batch;
    bool is_first, is_full;
} Taking;

static void take(void *opaque, uint64_t page, const void *bytes)
{
    static const uint8_t zeros[TT_PAGE_BYTES];
    Taking *t = opaque;

    if (bytes || !t->is_first) {
        t->is_full |= !tt_pagebatch_put(t->batch, page, bytes ?: zeros);
    }
}

/* Of the first one all that are not zero, of others what changed since the one before. */
TtPageBatch *tt_convert_recorded_batch(uint64_t index, bool is_first)
{
    Taking t = { .is_first = is_first };
    uint64_t n = 0;

    if (index >= rc.n) {
        return NULL;
    }
    for (uint64_t i = is_first ? 0 : index; i <= index; i++) {
        n += rc.points[i].n_pages;
    }
    t.batch = tt_pagebatch_new(MAX(n, 1));
    if (t.batch && (tt_pagestore_read_since(rc.store, is_first ? 0 : rc.points[index - 1].id,
                                            rc.points[index].id, take, &t) != TT_OK ||
                    t.is_full)) {
        g_clear_pointer(&t.batch, tt_pagebatch_free);
    }
    return t.batch;
}

/* ---- comparing ---- */

typedef struct Compared {
    uint64_t n_other, first_other;
    GArray *bits;               /* of Page: accessed and dirty bits differ */
} Compared;

static const void *here(void *opaque, uint64_t page)
{
    return tt_memory_page(NULL, page);
}

/* It differs. */
static void put(void *opaque, uint64_t page, const void *bytes)
{
    TtLandmarkPage want, now;
    Page p = { .number = page };
    Compared *c = opaque;

    if (bytes) {
        memcpy(p.bytes, bytes, TT_PAGE_BYTES);
    }
    tt_landmark_hash(&want, p.bytes);
    tt_landmark_hash(&now, here(NULL, page));
    if (want.table_hash == now.table_hash && tt_convert_is_table(page)) {
        g_array_append_val(c->bits, p);
    } else if (!c->n_other++) {
        c->first_other = page;
    }
}

static bool compare(uint64_t index, Compared *c)
{
    TtStatus s = tt_pagestore_compare(rc.store, rc.points[index].id, tt_memory_n_pages(),
                                      here, put, c);
    const TtDiag *said;

    if (s < 0) {
        said = tt_pagestore_read_error(rc.store);
        warn_report("tt: one of the recorder's checkpoints cannot be compared: %s",
                    said ? said->text : tt_status_name(s));
        return false;
    }
    return true;
}

static bool put_bits(const Page *p)
{
    uint64_t offset = 0;
    TtEvent ev = { .kind = TT_EV_RAM, .len = TT_PAGE_BYTES, .data = p->bytes };

    ev.addr = tt_memory_locate((void *)tt_memory_page(NULL, p->number), &offset);
    ev.val = offset;
    if (!tt_convert_apply(&ev)) {
        return false;
    }
    tt_now.pos++;
    return true;
}

bool tt_convert_recorded_compare(uint64_t index)
{
    g_autoptr(GArray) bits = g_array_new(false, false, sizeof(Page));
    Compared c = { .bits = bits };

    if (!compare(index, &c)) {
        if (tt_convert_part_is_on()) {      /* the next part begins with what it has */
            error_report("tt: one of the recorder's checkpoints cannot be read");
            exit(1);
        }
        return true;
    }
    tt_convert_counts.compared++;
    if (c.n_other) {
        tt_replay_report("RAM differs from the checkpoint that was recorded here, in %"
                         PRIu64 " pages; the first is page %" PRIu64, c.n_other,
                         c.first_other);
        return false;
    }
    for (guint i = 0; i < bits->len; i++) {
        if (!put_bits(&g_array_index(bits, Page, i))) {
            return false;
        }
    }
    return true;
}
