/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Takes one checkpoint of a recording, here and now: copies the pages that were
 * written since the last one, and the state. Owns what is known of the last one.
 */
#include "qemu/osdep.h"
#include "checkpoint/tt-cptake.h"
#include "accel-tt/tt-position.h"
#include "accel-tt/tt-vcpus.h"
#include "accel-tt/x86/tt-x86-paging.h"
#include "checkpoint/tt-cpfiles.h"
#include "checkpoint/tt-cpstore.h"
#include "hw-tt/memory/tt-memory.h"
#include "hw-tt/screen/tt-gpu.h"
#include "hw-tt/state/tt-disks.h"
#include "io/tt-base.h"
#include "pages/tt-page.h"
#include "pages/tt-pagestore.h"
#include "record/tt-flight.h"
#include "record/tt-record.h"
#include "run/tt-cpstate.h"
#include "session/tt-session.h"
#include "qemu/error-report.h"
#include "hw/core/cpu.h"
#include "qemu/timer.h"

/* Pages that can be copied aside; more, and those of the first checkpoint, are
 * added while the VM stands. New memory for 30000 pages took 200 ms of CPU time
 * (2026-11), so it is never made in a pause. */
#define BATCH_PAGES_MAX (256u << 10)    /* 1 GiB */

static struct {
    uint64_t pos;                   /* of the last one */
    int64_t last_ms;                /* when it was taken */
    size_t prepared_for;            /* pages, since then */
    int64_t start_ns;
    TtCheckpointerStats stats;      /* written with the BQL, read without */
} kp;

/* @full: what makes it a full one, or nothing. */
static const void *save_state(CPUState *cpu, TtBytes full, size_t *len)
{
    GByteArray *regs = tt_vcpus_save(), *blocks = tt_memory_blocks_save();
    TtMapState map;
    TtCpState s = {
        .halted = cpu->halted, .output_hash = tt_now.output_hash,
        .events = tt_session.events,
        .blocks = { blocks->data, blocks->len },
        .cpu = { regs->data, regs->len },
        .full = full,
    };
    g_autofree uint8_t *paging = NULL;
    uint32_t n;
    uint8_t *bytes;

    if (!tt_backend->counts_exits) {    /* KVM's guests change them unseen */
        paging = tt_paging_encode(tt_memory_map_has_changed(), &s.paging.len);
        s.paging.data = paging;
    }
    tt_record_place(&s.segment, &s.index);
    tt_flight_taking(s.segment);
    tt_memory_map_save(&map);
    s.n_blocks = map.n_blocks;
    for (unsigned i = 0; i < TT_CPSTATE_SPACES; i++) {
        if (map.sections[i]) {
            s.map[i] = (TtBytes) { map.sections[i]->data,
                                   map.sections[i]->len };
        }
    }
    bytes = tt_cpstate_encode(&s, &n);
    tt_memory_map_free(&map);
    g_byte_array_unref(regs);
    g_byte_array_unref(blocks);
    *len = n;
    return bytes;
}

/* It is made with half more, since the VM may run meanwhile. */
bool tt_cptake_has_room(uint32_t *job)
{
    size_t n = tt_memory_count_dirty();

    *job = 0;
    if (!tt_cpfiles_base() || n <= tt_cpstore_room()) {
        return true;
    }
    if (n <= BATCH_PAGES_MAX && n > kp.prepared_for) {
        kp.prepared_for = MIN(n + n / 2, BATCH_PAGES_MAX);
        *job = tt_cpstore_prepare(kp.prepared_for);
    }
    return false;
}

/* The disks' versions are there, or it is no full one; or that is not known yet. */
static void look_at_disks(TtCheckpointMeta *meta)
{
    if (meta->flags & TT_CHECKPOINT_FULL && !tt_disks_are_pending() && tt_disks_problem()) {
        meta->flags &= ~TT_CHECKPOINT_FULL;
        tt_cpstore_is_unkept(tt_disks_problem());
    }
}

/* Copies what is dirty aside, or adds it at once where that cannot be. */
static TtStatus collect(TtCheckpointMeta *meta, bool *has_batch,
                        size_t *n)
{
    g_autofree uint64_t *dirty = tt_memory_collect_dirty(n);
    TtNodeId base = tt_cpfiles_base();
    TtStatus s;

    *has_batch = base && tt_cpstore_batch() && *n <= tt_cpstore_room();
    if (!*has_batch) {
        TtPageStore *store;

        tt_disks_settle();
        look_at_disks(meta);
        store = tt_cpstore_take();
        s = !store ? TT_ERR_NOSPACE :
            tt_pagestore_add_checkpoint(store, tt_now.pos, base, dirty, *n,
                                        tt_memory_page, NULL, meta, &base);
        tt_cpstore_release();
        if (s == TT_OK) {
            tt_cpstore_set_base(base);
        } else {
            tt_cpstore_has_no_job();
        }
        return s;
    }
    for (size_t i = 0; i < *n; i++) {
        tt_pagebatch_put(tt_cpstore_batch(), dirty[i],
                         tt_memory_page(NULL, dirty[i]));
    }
    return TT_OK;
}

static void note_pause(int64_t ns, size_t pages)
{
    TtCheckpointerStats *st = &kp.stats;

    qatomic_set(&st->pause_ns_last, ns);
    qatomic_set(&st->pause_pages_last, pages);
    if (ns > st->pause_ns_most) {
        qatomic_set(&st->pause_ns_most, ns);
        qatomic_set(&st->pause_pages_most, pages);
    }
}

void tt_cptake_stood(int64_t ns)
{
    if (kp.stats.taken > 1) {
        note_pause(ns, qatomic_read(&kp.stats.pause_pages_last));
    }
}

TtStatus tt_cptake(CPUState *cpu, uint32_t flags, TtBytes full, uint32_t *job)
{
    int64_t began = qemu_clock_get_ns(QEMU_CLOCK_REALTIME);
    TtCheckpointMeta meta = {
        .flags = flags, .host_ns = began - kp.start_ns,
    };
    bool has_batch;
    size_t n;
    TtStatus s;

    meta.blob = save_state(cpu, full, &meta.blob_bytes);
    s = collect(&meta, &has_batch, &n);
    if (s != TT_OK) {
        g_free((void *)meta.blob);
        return s;
    }
    kp.pos = tt_now.pos;
    tt_paging_begin(kp.pos);
    kp.prepared_for = 0;
    kp.last_ms = began / SCALE_MS;
    look_at_disks(&meta);
    if (tt_disks_are_pending()) {
        tt_cpstore_hold();
    }
    *job = tt_cpstore_add(tt_now.pos, has_batch, &meta);
    tt_gpu_note_all();              /* whoever begins there reads it first */
    if (kp.stats.taken) {
        note_pause(qemu_clock_get_ns(QEMU_CLOCK_REALTIME) - began, n);
    }
    qatomic_set(&kp.stats.taken, kp.stats.taken + 1);
    return TT_OK;
}

bool tt_cptake_rebase(TtNodeId from, TtNodeId to)
{
    TtPageStore *store = tt_cpstore_take();
    g_autofree uint64_t *pages = NULL;
    size_t n;

    if (store) {
        pages = tt_pagestore_rebase(store, from, to, &n);
    }
    tt_cpstore_release();
    for (size_t k = 0; pages && k < n; k++) {
        tt_memory_mark_dirty(pages[k]);
    }
    if (pages) {
        tt_cpstore_set_base(to);
    }
    return pages;
}

uint64_t tt_cptake_pos(void)
{
    return kp.pos;
}

int64_t tt_cptake_ms(void)
{
    return kp.last_ms;
}

void tt_cptake_begin(void)
{
    memset(&kp, 0, sizeof(kp));
    tt_paging_begin(tt_now.pos);
    kp.start_ns = qemu_clock_get_ns(QEMU_CLOCK_REALTIME);
}

TtCheckpointerStats tt_checkpointer_stats(void)
{
    TtCheckpointerStats *st = &kp.stats;

    return (TtCheckpointerStats) {
        .count = tt_cpfiles_count(),
        .bytes = tt_cpfiles_bytes(),
        .taken = qatomic_read(&st->taken),
        .pause_ns_last = qatomic_read(&st->pause_ns_last),
        .pause_pages_last = qatomic_read(&st->pause_pages_last),
        .pause_ns_most = qatomic_read(&st->pause_ns_most),
        .pause_pages_most = qatomic_read(&st->pause_pages_most),
    };
}
