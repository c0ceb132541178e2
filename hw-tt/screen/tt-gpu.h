/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The screen of a virtio-gpu.
 *
 * Context: the BQL is held, and the vCPU is outside guest code.
 */
#ifndef TT_GPU_H
#define TT_GPU_H

#include "log/tt-log.h"

/* Recording: all of it into the log, for a replay that begins here. Compares the
 * pictures with RAM: 1 ms for a screen of 4 MB. */
void tt_gpu_note_all(void);
/* Replay: a TT_EV_SCREEN was passed. It skips notes that make no sense. */
void tt_gpu_passed(const TtEvent *ev);
GByteArray *tt_gpu_save(void);          /* of a checkpoint; NULL: nothing */
void tt_gpu_restore(const GByteArray *saved);   /* RAM is that of then */
struct QemuConsole;
bool tt_gpu_draw(struct QemuConsole *con);      /* false: it shows nothing */
bool tt_gpu_is_there(void);             /* a note was passed */
void tt_gpu_last_size(int *width, int *height); /* unchanged: of nothing */

#endif
