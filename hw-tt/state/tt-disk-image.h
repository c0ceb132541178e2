/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Names of disk images, and new images on top of others.
 *
 * Context: main thread, BQL held.
 */
#ifndef TT_DISK_IMAGE_H
#define TT_DISK_IMAGE_H

#include "run/tt-fullstate.h"

/* A new qcow2 image on top of @backing. */
bool tt_disk_make_overlay(const char *path, const char *backing,
                          const char *format, uint64_t size_bytes,
                          Error **errp);
/* Path of a store that is not there yet: DIR/disks/NAME.tt, or NAME-2.tt... */
char *tt_disk_fresh_store(const char *dir, const char *name);
/* A new disk with versions, on top of @backing; of that one's @version, if not 0. */
bool tt_disk_make_store(const char *path, const char *backing, const char *format,
                        uint32_t version, uint64_t size_bytes, Error **errp);
/* It was put on an image just now, which the files of @d hold: the run notes what they
 * look like (run/tt-bases.h). */
void tt_disk_note_files(const char *path, const TtFullDisk *d);
/* It, and what the run knows of it. */
void tt_disk_remove_store(const char *path);
/* NAME of DIR/disks/NAME.tt. */
char *tt_disk_store_name(const char *path);
bool tt_disk_has_version(const char *path, uint32_t version, Error **errp);
/* @path for somebody who knows where @dir is: relative when it lies
 * within; else absolute. Names with a protocol stay as they are. */
char *tt_disk_path_for(const char *path, const char *dir);
/* The inverse. */
char *tt_disk_path_from(const char *path, const char *dir);
/* Letters, digits, '-', '_' and '.' only. */
char *tt_disk_file_name(const char *name);

#endif
