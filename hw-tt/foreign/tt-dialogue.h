/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The dialogue of driver and device, as far as no event of a recording shows it: notes
 * for `tt log --device`.
 *
 * Context: the BQL is held.
 */
#ifndef TT_DIALOGUE_H
#define TT_DIALOGUE_H

#include "hw/pci/pci_device.h"

typedef struct TtDialogue {
    PCIDevice *pci;                     /* set by its owner */
    bool is_noting;                     /* this recording has notes of it */
    uint64_t noted_bars[PCI_ROM_SLOT];
} TtDialogue;

/* Before each access of a register. True: it is recorded; the log knows where the
 * device's BARs are. */
bool tt_dialogue_notes(TtDialogue *d);
void tt_dialogue_dma(TtDialogue *d, bool is_write, uint64_t addr, uint32_t n);
void tt_dialogue_irq(TtDialogue *d, const char *kind, unsigned vector);

#endif
