/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Places of a recording under KVM: registers come from the backend, the pages that
 * were written since the last place from the kernel's dirty log. All of them, so that a
 * place costs what was written and not what RAM there is.
 */
#include "qemu/osdep.h"
#include "record/tt-record-landmark.h"
#include "hw-tt/memory/tt-memory.h"
#include "record/tt-record.h"
#include "record/tt-writer.h"
#include "session/tt-session.h"
#include "hw/core/cpu.h"

static void put_pages(uint8_t *out, const uint64_t *pages, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        TtLandmarkPage page = { .page = pages[i] };

        tt_landmark_hash(&page, tt_memory_page(NULL, pages[i]));
        tt_landmark_put_page(out, i, &page);
    }
}

/* Full events of them, until one event is enough for the rest: how many these are. */
static size_t put_first_ones(uint8_t *data, const uint64_t *pages, size_t n)
{
    size_t done = 0;

    for (; n - done > TT_LANDMARK_PAGES_MAX; done += TT_LANDMARK_PAGES_MAX) {
        TtEvent ev = {
            .kind = TT_EV_LANDMARK_PAGES, .data = data,
            .len = TT_LANDMARK_PAGE * TT_LANDMARK_PAGES_MAX,
        };

        put_pages(data, pages + done, TT_LANDMARK_PAGES_MAX);
        tt_record_event(&ev);
    }
    return done;
}

void tt_record_landmark(CPUState *cpu, TtLandmark *place)
{
    TtEvent branches = { .kind = TT_EV_BRANCHES, .val = place->branches };
    size_t n;
    g_autofree uint64_t *pages = tt_memory_list_dirty(&n);
    g_autofree uint8_t *data =
        g_malloc(tt_landmark_bytes(MIN(n, TT_LANDMARK_PAGES_MAX)));
    TtEvent ev = { .kind = TT_EV_LANDMARK, .data = data };
    size_t first;

    if (place->has_branches) {
        tt_record_event(&branches);
    }
    first = put_first_ones(data, pages, n);
    place->n_pages = n - first;
    ev.len = tt_landmark_bytes(place->n_pages);
    tt_landmark_put_head(place, data);
    put_pages(data + TT_LANDMARK_HEAD, pages + first, place->n_pages);
    tt_record_event(&ev);
}

/* All that was logged so far is right. */
void tt_record_lost(void)
{
    if (tt_session.live) {
        tt_writer_hand_over();
        tt_record_give_up("KVM has stopped the vCPU where a replay could not find it");
    }
}
