/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Disks of a full checkpoint and of a branch. All calls, unless said otherwise: main
 * thread, BQL held, VM stopped or not made yet.
 */
#ifndef TT_DISKS_H
#define TT_DISKS_H

#include "run/tt-fullstate.h"

/* May files be made in the run directory? */
typedef bool TtFullMayMake(Error **errp);

/*
 * tt_disks_make_stores: from now on what the guest writes goes to RUN/disks, and the
 * images that the user gave stay as they are
 * Disks that have a store already, and those that can have none, are left alone.
 * @dev: only what this device has; NULL: all
 * @may_make: asked before a file is made
 * @said: one line for each disk whose writes go into another file from now on
 * False: nothing was changed.
 */
bool tt_disks_make_stores(DeviceState *dev, TtFullMayMake *may_make, GString *said,
                          Error **errp);
/*
 * tt_disks_can_write: a device is about to be plugged in on the node @node, if there is one
 * of that name
 * A store made the image below it read-only; if that store is gone with its device, the
 * image can be written again. The VM may run. False: it cannot be opened for that.
 */
bool tt_disks_can_write(const char *node, Error **errp);
/* The recording never began: nothing is left of its stores. */
void tt_disks_discard_stores(void);
/* False: a disk of the machine can be in no full checkpoint, whenever that is. */
bool tt_disks_can_be_kept(Error **errp);
/*
 * tt_disks_freeze: pins a version of each disk, after tt_disks_make_stores
 * tt_disks_can_be_kept was true.
 * @d: n_disks and disks are filled in: what each disk of the machine has
 * @name: of the versions, or NULL
 * @said: one line for each disk
 * All disks or none. tt_fulldesc_cleanup frees what is in @d, in any case.
 */
bool tt_disks_freeze(TtFullDesc *d, TtFullMayMake *may_make, const char *name,
                     GString *said, Error **errp);
/*
 * What was pinned is in memory, and reaches the disk while the VM runs. Until then it is
 * pending. @on_kept is called when that ends, by the main loop or by tt_disks_settle.
 * @problem: NULL, or why no version was kept: a clause.
 */
typedef void TtDisksKept(const char *problem);
void tt_disks_on_kept(TtDisksKept *on_kept);    /* once, at start */
bool tt_disks_are_pending(void);
const char *tt_disks_problem(void);             /* of those pinned last, or NULL */
void tt_disks_settle(void);                     /* waits: BQL, any thread */
/* No checkpoint has @version of the store @image (as TtFullDisk has it) any more; 0: the
 * copy @image, if it is one. The VM may run. A version stays if the log may name what was
 * read from it. */
void tt_disks_forget(const char *image, uint32_t version);
/* Bytes that versions of the stores keep: what the guest has overwritten since then. */
uint64_t tt_disks_kept_bytes(void);
/* There will be no checkpoint with what tt_disks_freeze has pinned. */
void tt_disks_unpin(const TtFullDesc *d);
/*
 * tt_disks_swap: the disks of the machine become what they were at a full checkpoint
 * Each that the guest can write gets a store in the present run directory, on the version
 * that was pinned; @dir: of the run that @d is of. Nobody uses them meanwhile. False:
 * *@has_changed says whether some are other ones now.
 */
bool tt_disks_swap(const TtFullDesc *d, const char *dir, bool *has_changed, Error **errp);
/* A store of the run whose file is not there any more, relative to the run; NULL: none. */
char *tt_disks_lost(void);
/* They get it when QEMU ends. */
void tt_disks_commit_at_end(void);
bool tt_disks_are_committed_at_end(void);
/*
 * tt_disks_leave: @dev is plugged out. If what the guest wrote to its disk should be in the
 * image when QEMU ends, it will not be: where it is instead. Otherwise NULL.
 */
char *tt_disks_leave(DeviceState *dev);
bool tt_disks_some_left(void);          /* those did */
/*
 * tt_disks_commit: writes what the stores of this process have into the images that the
 * user gave. False: *errp, and the stores still have it.
 */
bool tt_disks_commit(Error **errp);

/* The disk that the guest has at @device now: name of its image, or of its store; ""
 * when there is no medium. NULL: there is no such device. */
char *tt_disk_image_of(const char *device);

#endif
