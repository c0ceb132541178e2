/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Says whether this machine can be recorded, and if not, why.
 *
 * Context, unless said otherwise: the BQL is held.
 */
#ifndef TT_RECORDABLE_H
#define TT_RECORDABLE_H

#include "record/tt-record-options.h"

/* Does a device of this type write guest memory without QEMU? */
bool tt_type_is_unrecordable(const char *name);
bool tt_net_has_vhost(void);        /* is a network backend served by the host kernel? */
/* From now on such devices cannot be plugged in while a recording is on. */
void tt_watch_devices(void);

/* Whether the machine as it is now can be recorded. */
bool tt_can_record(Error **errp);

/* Why not, a sentence; NULL: it can. The first one is to be freed. */
char *tt_unrecordable_device(void);
struct MachineState;
const char *tt_unrecordable_machine(struct MachineState *ms);
/* The same for options under KVM. */
const char *tt_kvm_unrecordable(const TtRecordOptions *opt);
extern const char tt_no_icount[];

#endif
