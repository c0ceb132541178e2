/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Places of a recording under KVM: registers come from the backend, the pages that
 * were written since the last place from the kernel's dirty log.
 */
#include "qemu/osdep.h"
#include "record/tt-record-landmark.h"
#include "hw-tt/memory/tt-memory.h"
#include "record/tt-record.h"
#include "hw/core/cpu.h"

void tt_record_landmark(CPUState *cpu, TtLandmark *place)
{
    size_t n;
    g_autofree uint64_t *pages = tt_memory_list_dirty(&n);
    g_autofree uint8_t *data = NULL;
    TtEvent ev = { .kind = TT_EV_LANDMARK };

    place->n_pages = n;
    if (n > TT_LANDMARK_PAGES_MAX) {
        place->n_pages = TT_LANDMARK_WHOLE_RAM;
        place->ram_digest = tt_memory_digest();
        n = 0;
    }
    ev.len = tt_landmark_bytes(place->n_pages);
    ev.data = data = g_malloc(ev.len);
    tt_landmark_put_head(place, data);
    for (size_t i = 0; i < n; i++) {
        TtLandmarkPage page = { .page = pages[i] };

        tt_landmark_hash(&page, tt_memory_page(NULL, pages[i]));
        tt_landmark_put_page(data, i, &page);
    }
    tt_record_event(&ev);
}
