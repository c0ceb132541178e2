/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Can this machine be recorded?
 *
 * Context, unless said otherwise: the BQL is held.
 */
#ifndef TT_RECORDABLE_H
#define TT_RECORDABLE_H

/* Is a network backend served by the host kernel? */
bool tt_type_is_unrecordable(const char *name);     /* a device's type */
bool tt_net_has_vhost(void);
void tt_watch_devices(void);        /* those that are plugged in later */

/* Whether the machine as it is now can be recorded. */
bool tt_can_record(Error **errp);

/* Why not, a sentence; NULL: it can. The first one is to be freed. */
char *tt_unrecordable_device(void);
struct MachineState;
const char *tt_unrecordable_machine(struct MachineState *ms);
extern const char tt_no_icount[];

#endif
