/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Disks of a full checkpoint and of a branch, within the engine. All calls:
 * main thread, BQL held, VM stopped or not made yet.
 */
#ifndef TT_DISKS_H
#define TT_DISKS_H

#include "run/tt-fullstate.h"

/*
 * tt_disks_freeze: from now on nobody writes to the image that a disk has
 * @d: n_disks and disks are filled in: what each disk of the machine has
 * @said: one line for each disk whose writes go into another file from now on
 * All disks or none. tt_fulldesc_cleanup frees what is in @d, in any case.
 */
bool tt_disks_freeze(TtFullDesc *d, GString *said, Error **errp);

/* A new qcow2 image on top of @backing. */
bool tt_disk_make_overlay(const char *path, const char *backing,
                          const char *format, uint64_t size_bytes,
                          Error **errp);
/* @path as somebody finds it who knows where @dir is: relative when it lies
 * within; else absolute. Names with a protocol stay as they are. */
char *tt_disk_path_for(const char *path, const char *dir);
/* The inverse. */
char *tt_disk_path_from(const char *path, const char *dir);
/* Letters, digits, '-', '_' and '.' only. */
char *tt_disk_file_name(const char *name);

/* The disk that the guest has at @device now: name of its image, format; ""
 * when there is no medium. NULL: there is no such device. */
char *tt_disk_image_of(const char *device);

#endif
