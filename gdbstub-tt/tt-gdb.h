/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The interface of this room: gdb in a recording or replay.
 *
 * Context, unless said otherwise: the BQL is held.
 */
#ifndef TT_GDB_H
#define TT_GDB_H

bool tt_gdb_wanted(void);               /* -gdb or -s was given */
void tt_gdb_start(void);                /* -tt is on; before there is a vCPU */

#endif
