/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the files on disks of this room share. Main thread, BQL held. */
#ifndef TT_DISKS_INT_H
#define TT_DISKS_INT_H

#include "block/block.h"
#include "hw-tt/state/tt-disks.h"
#include "block-tt/tt-blockmap.h"

typedef struct TtDisk {
    BlockBackend *blk;
    BlockDriverState *bs;           /* what the guest has */
    bool is_writable, is_temporary; /* temporary: snapshot=on */
    TtVersionId version;            /* that was pinned just now; 0: none */
    TtFullDisk *desc;
} TtDisk;

/* ---- tt-disks.c ---- */

/* Of TtDisk: what devices of the machine have. */
GArray *tt_disks_collect(void);
bool tt_disks_make_directory(Error **errp);     /* RUN/disks */
char * GRAPH_RDLOCK tt_disk_image_name(BlockDriverState *bs);
/* The files that hold what @bs, which may be NULL, has. */
void GRAPH_RDLOCK tt_disk_describe_files(TtFullDisk *d, BlockDriverState *bs);
/*
 * QEMU opens an image anew, for reading only or for writing as well, by the name that it
 * was given: of a daemonized one that is the name from where it was started. -1: nothing
 * to come back from.
 */
int tt_disks_enter_start(void);
void tt_disks_come_back(int here);
/* The node that the user named: below our stores, but for that of a branch. */
const char * GRAPH_RDLOCK tt_disk_user_node(BlockDriverState *bs);

/* ---- tt-disk-stores.c ---- */

/* Is it a disk with versions that this process, or the branch's start, has made? */
bool tt_disk_is_store(BlockDriverState *bs);
/* One of this run, that no disk before the i-th of @disks (tt_disks_collect) has, too? */
bool tt_disk_has_own_store(GArray *disks, unsigned i);
/* Two devices may have one image: has none before the i-th of @disks this one? */
bool tt_disk_is_first(GArray *disks, unsigned i);
/* It stands above the node that the user named. */
bool tt_disk_is_inserted(BlockDriverState *bs);
char *tt_disk_store_path(BlockDriverState *bs);
char *tt_disk_new_node(void);           /* a name for the next of them */
/* @node takes the place of what the user had named @name. Later: that, or NULL. */
void tt_disk_name_for_user(const char *node, const char *name);
const char *tt_disk_users_name(BlockDriverState *bs);
bool tt_disks_insert_stores(DeviceState *dev, TtFullMayMake *may_make, GString *said,
                            Error **errp);
/* See tt_disks_can_write. */
bool tt_disk_reopen(const char *node, Error **errp);
/* A version of each store, on disk later (tt_disks_settle); nothing is pending. False: no
 * flush has begun (tt_disk_keep_none). */
bool tt_disks_pin(GArray *disks, const char *name, Error **errp);

/* ---- tt-disk-keep.c: nothing is pending ---- */

/* @version was made just now, in memory. */
void tt_disk_keep(BlockDriverState *bs, TtVersionId version, const char *device);
/* The file @path was made just now, for the same checkpoint. */
void tt_disk_keep_copy(const char *path);
void tt_disk_keep_begin(void);          /* that was all: to disk with them */
void tt_disk_keep_none(void);           /* that was all: they are deleted */

#endif
