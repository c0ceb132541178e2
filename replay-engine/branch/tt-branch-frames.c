/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A branch from a checkpoint of a group: what was on its way to this VM then is in the log
 * of the parent, after the checkpoint, and comes in first.
 */
#include "qemu/osdep.h"
#include "tt-branch-int.h"
#include "checkpoint/tt-checkpointer.h"
#include "io/tt-base.h"
#include "log/tt-log.h"
#include "log/tt-logparts.h"
#include "net-tt/glue/tt-net-epoch.h"
#include "session/tt-paths.h"
#include "qemu/error-report.h"

typedef struct Kept {
    uint32_t epoch;
    uint64_t pos;               /* of the checkpoint */
    bool is_behind;             /* its own note has come */
    GHashTable *seen;           /* run, sequence and netdev, as text: some are noted twice */
    TtKept frame;
    unsigned n, n_astray;
} Kept;

static uint32_t epoch_of(const char *name)
{
    unsigned epoch;
    int end = 0;

    return sscanf(name, TT_CPGROUP_NAME "%n", &epoch, &end) == 1 && !name[end] ? epoch : 0;
}

static TtStatus take(Kept *k, const TtEvent *ev, TtDiag *diag)
{
    const TtFrame *kept = &k->frame.frame;
    TtStatus st = tt_kept_take(&k->frame, ev->addr, ev->val, ev->aux, ev->data, ev->len,
                               diag);
    char run[2 * TT_RUN_BYTES + 1];
    TtFrame f = *kept;

    if (st || f.epoch >= k->epoch) {
        return st == TT_END ? TT_OK : st;
    }
    tt_run_text(run, f.run);
    f.epoch = 0;                /* the branches are a new group, without checkpoints */
    if (g_hash_table_add(k->seen, g_strdup_printf("%s %" PRIu64 " %s", run, f.seq,
                                                  k->frame.netdev))) {
        k->n++;
        k->n_astray += !tt_net_deliver_first(k->frame.netdev, &f);
    }
    return TT_OK;
}

static TtStatus read_log(Kept *k, TtLogReader *r, TtDiag *diag)
{
    TtStatus st = TT_OK;

    for (uint64_t s = tt_log_reader_find(r, k->pos); !st && s < tt_log_reader_end(r); s++) {
        TtSegment *seg = NULL;

        st = tt_log_reader_load(r, s, &seg, diag);
        for (uint32_t i = 0; !st && i < seg->n_events; i++) {
            const TtEvent *ev = &seg->events[i];

            if (ev->kind != TT_EV_FRAME) {
                continue;
            }
            if (ev->addr == TT_FRAME_EPOCH && ev->val == k->epoch) {
                k->is_behind = true;
            } else if ((ev->addr == TT_FRAME_KEPT || ev->addr == TT_FRAME_REST) &&
                       k->is_behind) {
                st = take(k, ev, diag);
            }
        }
        if (seg) {
            tt_segment_unref(seg);
        }
    }
    return st;
}

void tt_branch_take_frames(const char *dir, const char *name, uint64_t pos)
{
    g_autofree Kept *k = g_new0(Kept, 1);
    TtLogReader *r = NULL;
    TtStatus st;
    TtDiag diag;
    TtIo *io;

    k->epoch = epoch_of(name);
    k->pos = pos;
    if (!k->epoch) {
        return;
    }
    k->seen = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    st = tt_logparts_open(dir, &io, &diag);
    if (st == TT_OK) {
        st = tt_log_reader_open_part(io, &r, &diag);
        st = r ? read_log(k, r, &diag) : st;
        tt_log_reader_free(r);
    }
    if (st < 0) {
        warn_report("tt: frames that were on their way at the checkpoint of the group are "
                    "lost, because the log of '%s' cannot be read: %s", tt_printable(dir),
                    diag.text);
    }
    if (k->n_astray) {
        warn_report("tt: %u of %u frames that were on their way at the checkpoint of the "
                    "group are lost, because their netdev does not exist: use the same "
                    "options", k->n_astray, k->n);
    }
    if (k->frame.n < k->frame.frame.len) {
        warn_report("tt: a frame that was on its way at the checkpoint of the group is lost: "
                    "the log of '%s' was cut off inside of it", tt_printable(dir));
    }
    g_hash_table_unref(k->seen);
}
