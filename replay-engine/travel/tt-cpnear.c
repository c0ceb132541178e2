/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Near checkpoints stand between sync points, shortly before a place that somebody went
 * to, and keep the TLB as it was there.
 */
#include "qemu/osdep.h"
#include "travel/tt-cpnear.h"
#include "accel-tt/tt-position.h"
#include "accel-tt/tt-vcpus.h"
#include "hw-tt/memory/tt-memory.h"
#include "replay/tt-replay-log.h"
#include "replay/tt-stop.h"
#include "session/tt-session.h"
#include "timeline/tt-near.h"
#include "timeline/tt-timeline.h"
#include "tt-cptable-int.h"
#include "tt/hooks.h"
#include "system/cpus.h"

/* At most: of the last places, four each. */
#define TT_NEAR_MAX 32

static void drop_worst_near(void)
{
    g_autoptr(GArray) at = g_array_new(false, false, sizeof(uint64_t));
    g_autoptr(GPtrArray) near = g_ptr_array_new();
    GHashTableIter it;
    TtRestorable *c;

    g_hash_table_iter_init(&it, tt_cptable.checkpoints);
    while (g_hash_table_iter_next(&it, NULL, (void **)&c)) {
        if (c->tlbs) {
            g_array_append_val(at, c->pos);
            g_ptr_array_add(near, c);
        }
    }
    c = g_ptr_array_index(near, tt_near_worst((uint64_t *)at->data, at->len,
                                              tt_now.pos));
    tt_cptable_drop(c->id);
}

void tt_checkpoints_drop_near(uint64_t from)
{
    TtCheckpointId id;
    uint64_t at;

    while ((id = tt_timeline_find_after(tt_cptable.timeline, from, &at)) &&
           at <= tt_now.pos) {
        if (!tt_cptable_find(id)->tlbs || !tt_cptable_drop(id)) {
            from = at;
        }
    }
}

/* Is all of this vCPU's state in its registers and its TLB? */
static bool is_at_rest(CPUState *cpu)
{
    return cpu_work_list_empty(cpu) && !cpu->interrupt_request &&
        cpu->exception_index == -1 && !cpu->watchpoint_hit;
}

static bool may_stand_near(void)
{
    for (unsigned i = 0; i < tt_vcpus_count(); i++) {
        if (!is_at_rest(tt_vcpus_at(i))) {
            return false;
        }
    }
    return !tt_replayer.diverged && tt_now.pos != tt_last_sync_point(tt_now.pos) &&
        !tt_insn_counted;
}

void tt_checkpoints_near(CPUState *cpu)
{
    TtRestorable *c;
    uint64_t at;

    /* Without that remedy tables change their size, and entries their place. */
    if (!tt_backend->save_tlbs || (tt_omit & TT_OMIT_FIXED_TLB) || tt_at_end_exit ||
        !tt_session.manifest.sync_interval || !may_stand_near() ||
        (tt_timeline_find(tt_cptable.timeline, tt_now.pos, &at) && at == tt_now.pos)) {
        return;
    }
    if (tt_cptable.n_near >= TT_NEAR_MAX) {
        drop_worst_near();
    }
    c = tt_cptable_take(cpu, false);
    if (c) {
        c->map_changes = tt_memory_map_changes();
        c->tlbs = tt_backend->save_tlbs();
        tt_cptable.tlb_bytes += tt_backend->bytes_of_tlbs(c->tlbs);
        tt_cptable.n_near++;
        tt_cptable_make_room();
    }
}

TtCheckpointId tt_checkpoints_find_no_near(uint64_t pos, uint64_t *at)
{
    TtCheckpointId id;

    while ((id = tt_timeline_find(tt_cptable.timeline, pos, at)) &&
           tt_cptable_find(id)->tlbs) {
        pos = *at - 1;
    }
    return id;
}
