/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Facts that only the device knows, as notes in the log of a recording: where its BARs
 * are, which DMA and which interrupts are its own. A replay passes over them. The form:
 * docs/reference/log-format.rst.
 */
#include "qemu/osdep.h"
#include "hw-tt/foreign/tt-dialogue.h"
#include "hw/pci/pci.h"
#include "log/tt-log.h"
#include "session/tt-ops.h"
#include "session/tt-session.h"
#include "tt/hooks.h"

/* The id that the user gave, or where it is plugged in. */
static void name_of(TtDialogue *d, char *out, size_t size)
{
    if (DEVICE(d->pci)->id) {
        g_strlcpy(out, DEVICE(d->pci)->id, size);
    } else {
        snprintf(out, size, "%02x:%02x.%x", pci_dev_bus_num(d->pci),
                 PCI_SLOT(d->pci->devfn), PCI_FUNC(d->pci->devfn));
    }
}

static void note(TtDialogue *d, const char *what)
{
    char name[64], text[160];
    TtEvent ev = { .kind = TT_EV_NOTE, .data = (const uint8_t *)text };

    name_of(d, name, sizeof(name));
    snprintf(text, sizeof(text), "device %s: %s", name, what);
    ev.len = strlen(text);
    tt_log_event(&ev);
}

static void note_bars(TtDialogue *d)
{
    for (unsigned i = 0; i < PCI_ROM_SLOT; i++) {
        const PCIIORegion *r = &d->pci->io_regions[i];
        char text[80];

        if (r->size && d->noted_bars[i] != r->addr) {
            d->noted_bars[i] = r->addr;
            if (r->addr == PCI_BAR_UNMAPPED) {
                snprintf(text, sizeof(text), "bar %u unmapped", i);
            } else {
                snprintf(text, sizeof(text), "bar %u at %" PRIx64 " size %" PRIx64
                         " %s", i, r->addr, r->size,
                         r->type & PCI_BASE_ADDRESS_SPACE_IO ? "io" : "memory");
            }
            note(d, text);
        }
    }
}

bool tt_dialogue_notes(TtDialogue *d)
{
    if (!tt_recording() || !tt_session.live) {
        d->is_noting = false;
        return false;
    }
    if (!d->is_noting) {
        d->is_noting = true;
        for (unsigned i = 0; i < PCI_ROM_SLOT; i++) {
            d->noted_bars[i] = PCI_BAR_UNMAPPED;
        }
    }
    note_bars(d);
    return true;
}

void tt_dialogue_dma(TtDialogue *d, bool is_write, uint64_t addr, uint32_t n)
{
    char text[80];

    if (tt_dialogue_notes(d)) {
        snprintf(text, sizeof(text), "%s %" PRIx64 " size %" PRIx32,
                 is_write ? "writes" : "reads", addr, n);
        note(d, text);
    }
}

void tt_dialogue_irq(TtDialogue *d, const char *kind, unsigned vector)
{
    char text[80];

    if (tt_dialogue_notes(d)) {
        snprintf(text, sizeof(text), "interrupt %s %u", kind, vector);
        note(d, text);
    }
}
