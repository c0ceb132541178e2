/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The register $tt_position, and packets that ask or move.
 *
 * Context: main thread, BQL held.
 */
#ifndef TT_GDB_QUERY_INT_H
#define TT_GDB_QUERY_INT_H

void tt_gdb_init_queries(void);

#endif
