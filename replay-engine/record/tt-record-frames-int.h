/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A recording with frame stores. Context: the BQL is held.
 */
#ifndef TT_RECORD_FRAMES_INT_H
#define TT_RECORD_FRAMES_INT_H

#include "run/tt-manifest.h"

/* Before a recording: makes the directory of the stores. False: *errp. */
bool tt_record_frames_check(Error **errp);
/* The run has a directory: says in @m where the stores are, if the log names frames. */
void tt_record_frames_note(TtManifest *m);

#endif
