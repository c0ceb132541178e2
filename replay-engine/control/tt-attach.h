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
/* Where the recording that has ended stood. @dir stays valid. */
typedef struct TtEnded {
    const char *dir;
    uint64_t pos, events, bytes;
    bool whole;                     /* all of it is on disk */
} TtEnded;
bool tt_detach(TtEnded *ended, Error **errp);

#endif
