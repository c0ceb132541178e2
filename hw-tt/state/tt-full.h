/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Full checkpoints: saves and loads the state of all devices. Main thread, BQL held, VM
 * stopped. */
#ifndef TT_FULL_H
#define TT_FULL_H

#include "hw-tt/state/tt-disks.h"
#include "run/tt-cpstate.h"
#include "run/tt-fullstate.h"

/* Can this machine, as it is, have full checkpoints? The VM may run. False: *errp. */
bool tt_full_is_possible(Error **errp);
/*
 * tt_full_save: what a checkpoint of this moment needs to be branched from
 * Freezes the disks. May raise interrupts and write RAM, as stopping a VM may;
 * what the store is to have of RAM is collected afterwards. NULL: *errp says
 * why there can be none; nothing was changed then.
 * @name: the user's, or NULL
 * @may_make: asked before a file is made in the run directory
 * @said: lines for the user
 */
TtFullWriter *tt_full_save(const char *name, TtFullMayMake *may_make,
                           GString *said, Error **errp);
/* The machine as it is made; the disks are left out. */
void tt_full_describe(TtFullDesc *d);
/*
 * tt_full_load: the devices, and RAM that the store does not have
 * The machine is made and was reset. False: the VM cannot run.
 */
bool tt_full_load(TtBytes full, Error **errp);

#endif
