/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Frame stores while a VM is recorded: what it sends goes into its own; of what arrives, the
 * bytes that another one's store has are named in the log.
 *
 * Context: the BQL is held.
 */
#ifndef TT_NET_FRAMES_H
#define TT_NET_FRAMES_H

#include "log/tt-log.h"

/* Once, before the first recording: the stores are in @dir. Only with TT_FEATURE_FRAMES of
 * the manifest is anything named. */
void tt_net_frames_init(const char *dir);
/* A recording begins. @on: it uses the stores. */
void tt_net_frames_begin(bool on);
/* As TtMemoryFindInFrame. Costs nothing when no frame is arriving. */
bool tt_net_frames_find(const uint8_t *written, uint64_t len, uint64_t *at, TtEvent *ev);
/* The recording is over: flushes the store of its frames. May wait for the disk. */
void tt_net_frames_end(void);

#endif
