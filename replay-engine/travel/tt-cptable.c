/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The checkpoints of a replay: RAM is in pages/tt-pagestore.h, which of them serves a
 * movement is timeline/tt-timeline.h's to say; this file takes them, and thins them
 * when they need too much memory.
 */
#include "qemu/osdep.h"
#include "travel/tt-cptable.h"
#include "accel-tt/tt-position.h"
#include "accel-tt/tt-vcpus.h"
#include "hw-tt/memory/tt-memory.h"
#include "hw-tt/screen/tt-gpu.h"
#include "io/tt-base.h"
#include "log/tt-sched.h"
#include "pages/tt-page.h"
#include "pages/tt-pagestore.h"
#include "replay/tt-replay-log.h"
#include "session/tt-checkpoint.h"
#include "session/tt-session.h"
#include "timeline/tt-timeline.h"
#include "tt-cptable-int.h"
#include "tt/hooks.h"
#include "qapi/error.h"
#include "qemu/units.h"
#include "hw/core/cpu.h"

uint64_t tt_checkpoints_bytes = GiB;

/* The part of the memory for checkpoints that new pages take, which are not
 * compressed yet. */
#define TT_CHECKPOINT_PLAIN 16

TtCheckpointTable tt_cptable;

TtRestorable *tt_cptable_find(TtCheckpointId id)
{
    return g_hash_table_lookup(tt_cptable.checkpoints, GUINT_TO_POINTER(id));
}

void tt_cptable_free(TtRestorable *c)
{
    if (c->loaded) {
        tt_memory_map_free(&c->map);
        g_byte_array_unref(c->cpu_state);
    }
    tt_cptable.screen_bytes -= c->screen ? c->screen->len : 0;
    g_clear_pointer(&c->screen, g_byte_array_unref);
    if (c->tlbs) {
        tt_cptable.tlb_bytes -= tt_backend->bytes_of_tlbs(c->tlbs);
        tt_cptable.n_near--;
        tt_backend->free_tlbs(c->tlbs);
    }
    g_free(c);
}

/* RAM comes from @c: say that it comes from the checkpoint before. */
static bool rebase(TtRestorable *c)
{
    TtCheckpointId id = tt_timeline_find(tt_cptable.timeline, c->pos - 1, NULL);
    g_autofree uint64_t *pages = NULL;
    size_t n;

    pages = tt_pagestore_rebase(tt_cptable.pages, c->id, id, &n);
    if (!pages) {
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        tt_memory_mark_dirty(pages[i]);
    }
    tt_cptable.base = id;
    return true;
}

void tt_cptable_base_before(uint64_t pos)
{
    TtRestorable *c;

    while ((c = tt_cptable_find(tt_cptable.base)) && c->pos > pos && rebase(c)) {
    }
}

bool tt_cptable_drop(TtCheckpointId id)
{
    TtRestorable *c = tt_cptable_find(id);

    assert(c && c->id != tt_cptable.start);
    if (c->id == tt_cptable.base && !rebase(c)) {
        return false;
    }
    tt_timeline_remove(tt_cptable.timeline, id);
    tt_pagestore_delete(tt_cptable.pages, c->id);
    g_hash_table_remove(tt_cptable.checkpoints, GUINT_TO_POINTER(id));
    tt_cptable_free(c);
    return true;
}

/* Gives up the checkpoint that is missed least, but not @keep; false: none. */
bool tt_cptable_thin(TtNodeId keep)
{
    TtCheckpointId id = tt_timeline_thin(tt_cptable.timeline, tt_now.pos,
                                         tt_replay_end() / 2);
    TtRestorable *c = id ? tt_cptable_find(id) : NULL;

    return c && c->id != keep && tt_cptable_drop(id);
}

/* Memory that this replay's own checkpoints take. */
static uint64_t bytes_in_use(void)
{
    TtPageStoreStats st;

    if (!tt_cptable.has_files) {
        return tt_pagestore_bytes(tt_cptable.pages) + tt_cptable.screen_bytes +
            tt_cptable.tlb_bytes;
    }
    st = tt_pagestore_stats(tt_cptable.pages);
    return st.pending_bytes + st.packed_bytes + tt_cptable.screen_bytes +
        tt_cptable.tlb_bytes + tt_checkpoints_bytes / TT_CHECKPOINT_CACHE;
}

/* Most pages are kept compressed, which takes a third of the memory. */
void tt_cptable_make_room(void)
{
    tt_pagestore_pack(tt_cptable.pages, tt_checkpoints_bytes / TT_CHECKPOINT_PLAIN,
                      tt_checkpoints_bytes / TT_CHECKPOINT_CACHE);
    while (bytes_in_use() > tt_checkpoints_bytes) {
        if (!tt_cptable_thin(0)) {
            break;
        }
    }
}

/* The state that is not RAM, as it is now. */
void tt_cptable_note_state(CPUState *cpu, TtRestorable *c)
{
    c->cursor = tt_sched_tell(tt_replay_sched());
    c->cpu_state = tt_vcpus_save();
    c->screen = tt_gpu_save();
    tt_cptable.screen_bytes += c->screen ? c->screen->len : 0;
    c->halted = cpu->halted;
    c->output_hash = tt_now.output_hash;
    c->events = tt_session.events;
    tt_memory_map_save(&c->map);
    c->loaded = true;
}

TtRestorable *tt_cptable_enter(TtNodeId id, uint64_t pos, bool pinned, bool stored)
{
    TtRestorable *c = g_new0(TtRestorable, 1);

    c->id = id;
    c->pos = pos;
    c->pinned = pinned;
    c->stored = stored;
    g_hash_table_insert(tt_cptable.checkpoints, GUINT_TO_POINTER(id), c);
    tt_timeline_add(tt_cptable.timeline, id, pos, pinned || stored);
    return c;
}

void tt_cptable_mark_dirty(const uint64_t *pages, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        tt_memory_mark_dirty(pages[i]);
    }
}

TtRestorable *tt_cptable_take(CPUState *cpu, bool pinned)
{
    TtRestorable *c;
    g_autofree uint64_t *dirty = NULL;
    TtNodeId id;
    size_t n;

    dirty = tt_memory_collect_dirty(&n);
    if (tt_pagestore_add(tt_cptable.pages, tt_now.pos, tt_cptable.base, dirty, n,
                         tt_memory_page, NULL, &id) != TT_OK) {
        tt_cptable_mark_dirty(dirty, n);       /* they still are */
        return NULL;
    }
    tt_cptable.base = id;
    c = tt_cptable_enter(id, tt_now.pos, pinned, false);
    tt_cptable_note_state(cpu, c);
    return c;
}

static void free_entry(gpointer key, gpointer value, gpointer opaque)
{
    tt_cptable_free(value);
}

void tt_cptable_clear(void)
{
    if (tt_cptable.timeline) {
        g_hash_table_foreach(tt_cptable.checkpoints, free_entry, NULL);
        g_hash_table_unref(tt_cptable.checkpoints);
        tt_timeline_free(tt_cptable.timeline);
        tt_pagestore_free(tt_cptable.pages);
    }
    memset(&tt_cptable, 0, sizeof(tt_cptable));
}

void tt_checkpoints_pin(TtCheckpointId id)
{
    TtRestorable *c = tt_cptable_find(id);

    if (!c->pinned) {
        c->pinned = true;
        tt_timeline_remove(tt_cptable.timeline, c->id);
        tt_timeline_add(tt_cptable.timeline, c->id, c->pos, true);
    }
}

/* ---- for the user ---- */

unsigned tt_checkpoints_count(void)
{
    return tt_cptable.timeline ?
        tt_timeline_count(tt_cptable.timeline) - tt_cptable.n_near : 0;
}

static int by_position(const void *a, const void *b)
{
    const TtCheckpointDesc *x = a, *y = b;

    return x->pos < y->pos ? -1 : x->pos > y->pos;
}

GArray *tt_checkpoints_list(void)
{
    GArray *list = g_array_new(false, false, sizeof(TtCheckpointDesc));
    GHashTableIter it;
    TtRestorable *c;

    if (!tt_cptable.checkpoints) {
        return list;
    }
    g_hash_table_iter_init(&it, tt_cptable.checkpoints);
    while (g_hash_table_iter_next(&it, NULL, (void **)&c)) {
        TtCheckpointInfo node = { 0 };
        TtCheckpointDesc info;

        if (c->tlbs) {
            continue;
        }
        info = (TtCheckpointDesc) {
            .id = c->id, .pos = c->pos, .pinned = c->pinned,
            .stored = c->stored,
        };

        tt_pagestore_info(tt_cptable.pages, c->id, &node);
        info.pages = node.n_pages;
        info.full = node.flags & TT_CHECKPOINT_FULL;
        info.host_ns = node.host_ns;
        info.bytes = node.stored_bytes + node.blob_bytes;
        g_array_append_val(list, info);
    }
    g_array_sort(list, by_position);
    return list;
}

bool tt_checkpoints_delete(uint64_t id, Error **errp)
{
    TtRestorable *c = id && id <= UINT32_MAX ? tt_cptable_find(id) : NULL;

    if (!c || c->tlbs) {
        error_setg(errp, "there is no checkpoint %" PRIu64 ": see 'tt checkpoint list' "
                   "(in QMP query-tt-checkpoints)", id);
    } else if (tt_past && c->stored) {
        error_setg(errp, "checkpoint %" PRIu64 " belongs to the recording, so it can be "
                   "deleted only there: " TT_RETURN_FIRST, id);
    } else if (c->id == tt_cptable.start) {
        error_setg(errp, "checkpoint %" PRIu64 " is the beginning of the run "
                   "and cannot be deleted", id);
    } else if (!tt_cptable_drop(id)) {
        error_setg(errp, "not enough memory to delete the checkpoint that the "
                   "VM comes from: delete another one first");
    } else {
        return true;
    }
    return false;
}
