/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Names of disk images, and new images on top of others.
 *
 * Context: main thread, BQL held.
 */
#ifndef TT_DISK_IMAGE_H
#define TT_DISK_IMAGE_H

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

#endif
