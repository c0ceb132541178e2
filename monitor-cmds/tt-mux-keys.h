/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Undo and redo as keys of a terminal that QEMU multiplexes. */
#ifndef TT_MUX_KEYS_H
#define TT_MUX_KEYS_H

/* Once, before there is a chardev: with -tt record,undo=console. Main thread. */
void tt_mux_keys_init(void);

#endif
