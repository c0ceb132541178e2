/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Starts and ends the recording of a VM that is running.
 *
 * Context, unless said otherwise: the BQL is held.
 */
#ifndef TT_ATTACH_H
#define TT_ATTACH_H

#include "record/tt-record-options.h"

/* Main thread. The VM is stopped for the while and goes on afterwards if it ran. */
bool tt_attach(const TtRecordOptions *opt, Error **errp);
/* Main thread; recording: from now on what the guest writes to disks of @dev, or of any
 * device (NULL), that have no store yet goes to the run, unless they are not to (disk=image).
 * Says which. False: nothing was changed. */
bool tt_redirect_disks(DeviceState *dev, Error **errp);
/* Where the recording that has ended stood. @dir stays valid. */
typedef struct TtEnded {
    const char *dir;
    uint64_t pos, events, bytes;
    bool whole;                     /* all of it is on disk */
} TtEnded;
bool tt_detach(TtEnded *ended, Error **errp);

/*
 * Main thread: ends the recording, and the VM goes on from full checkpoint @id of the run
 * @parent, which may be the one that ends; that is recorded with @opt, as a branch, or,
 * with @is_alone, as a run that needs no other. False while there is still a recording:
 * nothing has changed.
 */
bool tt_attach_branch(const TtRecordOptions *opt, const char *parent, uint32_t id,
                      bool is_alone, Error **errp);

#endif
