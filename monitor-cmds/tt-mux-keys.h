/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Undo and redo as keys of a terminal that QEMU multiplexes. */
#ifndef TT_MUX_KEYS_H
#define TT_MUX_KEYS_H

/* Once, at the start; main thread. */
void tt_mux_keys_init(void);

#endif
