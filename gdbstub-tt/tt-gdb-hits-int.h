/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The search for all hits of some addresses.
 *
 * Context: main thread, BQL held.
 */
#ifndef TT_GDB_HITS_INT_H
#define TT_GDB_HITS_INT_H

void tt_gdb_init_hits(void);
/* A process that was named for the next search is forgotten. */
void tt_gdb_hits_forget(void);

#endif
