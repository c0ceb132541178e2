/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Compares the VM where an interval ends with the checkpoint that stands there: RAM
 * page by page, vCPUs, memory map, outputs.
 */
#include "qemu/osdep.h"
#include "accel-tt/tt-position.h"
#include "accel-tt/tt-vcpus.h"
#include "hw-tt/memory/tt-memory.h"
#include "session/tt-checkpoint.h"
#include "session/tt-session.h"
#include "travel/tt-checkpoints.h"
#include "travel/tt-cprestore.h"
#include "travel/tt-search.h"
#include "tt-verify-compare-int.h"
#include "tt-verify-say-int.h"
#include "hw/core/cpu.h"
#include "qemu/error-report.h"

static bool is_restoring;

bool tt_verify_is_restoring(void)
{
    return is_restoring;
}

void tt_verify_note_page(void *opaque, uint64_t page, const void *bytes)
{
    TtVerifyFound *f = opaque;
    TtDiffering d;

    if (tt_verify_page_differs(page, bytes, &d)) {
        if (f->n_pages < TT_VERIFY_PAGES) {
            f->pages[f->n_pages] = d;
        }
        f->n_pages++;
    }
}

typedef struct Seen {
    uint64_t digest, output_hash, events;
    TtMapState map;
    GPtrArray *registers;
} Seen;

static void look(Seen *s)
{
    s->digest = tt_vcpus_digest();
    s->output_hash = tt_now.output_hash;
    s->events = tt_session.events;
    s->registers = tt_verify_registers();
    tt_memory_map_save(&s->map);
}

static void seen_cleanup(Seen *s)
{
    g_ptr_array_unref(s->registers);
    tt_memory_map_free(&s->map);
}

static bool is_same_map(const TtMapState *a, const TtMapState *b)
{
    for (unsigned i = 0; i < ARRAY_SIZE(a->sections); i++) {
        const GByteArray *x = a->sections[i], *y = b->sections[i];

        if (!x != !y || (x && (x->len != y->len ||
                               memcmp(x->data, y->data, x->len)))) {
            return false;
        }
    }
    return a->n_blocks == b->n_blocks;
}

/* @replayed was where @recorded now is, as the checkpoint says. */
static bool compare_states(const Seen *replayed, const Seen *recorded,
                           TtVerifyFound *f)
{
    bool same = true;

    tt_verify_reg_cleanup(&f->reg);
    if (replayed->digest != recorded->digest) {
        tt_verify_say("vcpu");
        tt_verify_compare_registers(replayed->registers, recorded->registers,
                                    &f->reg);
        same = false;
    }
    if (replayed->output_hash != recorded->output_hash) {
        tt_verify_say("outputs");
        same = false;
    }
    if (replayed->events != recorded->events) {
        tt_verify_say("events recorded=%" PRIu64 " replayed=%" PRIu64, recorded->events,
                      replayed->events);
        same = false;
    }
    if (!is_same_map(&replayed->map, &recorded->map)) {
        tt_verify_say("map");
        same = false;
    }
    return same;
}

bool tt_verify_restore(const TtCheckpointDesc *p)
{
    TtRestored how;

    tt_search_leave();
    is_restoring = true;
    how = tt_checkpoints_restore(tt_vcpu(), p->id);
    is_restoring = false;
    if (how == TT_RESTORED) {
        tt_search_restored();
    } else if (how == TT_RESTORE_NOMEM) {
        warn_report("tt: there is not enough memory for checkpoint %u", p->id);
    }
    return how == TT_RESTORED;
}

bool tt_verify_compare(const TtCheckpointDesc *p, TtVerifyFound *f, bool *same)
{
    Seen replayed, recorded;

    f->n_pages = 0;
    *same = true;
    if (!tt_checkpoints_compare(p->id, tt_verify_note_page, f)) {
        return false;
    }
    look(&replayed);
    if (!tt_verify_restore(p)) {
        seen_cleanup(&replayed);
        return false;
    }
    look(&recorded);
    *same = compare_states(&replayed, &recorded, f) && !f->n_pages;
    seen_cleanup(&replayed);
    seen_cleanup(&recorded);
    return true;
}
