/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Disks of a full checkpoint and of a branch, within the engine. All calls:
 * main thread, BQL held, VM stopped or not made yet.
 */
#ifndef TT_DISKS_H
#define TT_DISKS_H

#include "run/tt-fullstate.h"

/* May files be made in the run directory? */
typedef bool TtFullMayMake(Error **errp);

/*
 * tt_disks_freeze: from now on nobody writes to the image that a disk has
 * @d: n_disks and disks are filled in: what each disk of the machine has
 * @may_make: asked before a file is made
 * @said: one line for each disk whose writes go into another file from now on
 * All disks or none. tt_fulldesc_cleanup frees what is in @d, in any case.
 */
bool tt_disks_freeze(TtFullDesc *d, TtFullMayMake *may_make, GString *said,
                     Error **errp);

/* The disk that the guest has at @device now: name of its image, format; ""
 * when there is no medium. NULL: there is no such device. */
char *tt_disk_image_of(const char *device);

#endif
