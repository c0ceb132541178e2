/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Checkpoints of a group, as the frames between its VMs see them: all frames sent
 * before one are of an earlier epoch than those sent after it.
 *
 * A frame of a later epoch than this VM's waits until this VM has made its checkpoint,
 * too. One of an earlier epoch was on its way: it is kept in the log, for VMs that
 * start from the checkpoint.
 *
 * Context: main thread, the BQL is held.
 */
#ifndef TT_NET_EPOCH_H
#define TT_NET_EPOCH_H

#include "net-tt/tt-frame.h"

/* How many checkpoints the group has made that this VM has made or knows of. */
uint32_t tt_net_epoch(void);
/* Is there any netdev tt or filter-tt? */
bool tt_net_is_there(void);

/*
 * The maker of checkpoints installs @wanted, which asks for checkpoint @epoch, soon; it
 * may be called again. It leads to tt_net_epoch_begins. False: this VM is not recorded,
 * and makes none.
 */
void tt_net_epoch_init(bool (*wanted)(uint32_t epoch));
/* The VM stands right after its checkpoint @epoch, or has none (!@is_made) and goes on.
 * All others are told. */
void tt_net_epoch_begins(uint32_t epoch, bool is_made);

/* A branch begins: the VM gets this frame before any other. False: there is no such
 * netdev. */
bool tt_net_deliver_first(const char *netdev, const TtFrame *f);

#endif
