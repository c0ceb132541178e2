/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a guest reads from its disks: while recording, which disk has it; in a replay, the
 * bytes from there.
 *
 * Context: the BQL is held.
 */
#ifndef TT_DISK_REFS_H
#define TT_DISK_REFS_H

#include "log/tt-log.h"
#include "run/tt-manifest.h"

/* A recording begins: main thread, the VM is stopped. From now on what is read from the
 * stores of this run is named, not logged; @m gets their names. False: *errp. */
bool tt_disk_refs_begin(TtManifest *m, Error **errp);
void tt_disk_refs_end(void);
/*
 * tt_disk_refs_fill: the bytes that event @ev, of kind TT_EV_DISK, means
 * @out: room for tt_event_bytes(ev)
 * TT_ERR_FORMAT: the event, or the disk, is damaged; TT_ERR_IO: it is not there, or cannot
 * be read. @diag says what to do.
 */
TtStatus tt_disk_refs_fill(const TtEvent *ev, uint8_t *out, TtDiag *diag);
/* No disk of the run is open any more. */
void tt_disk_refs_close(void);

#endif
