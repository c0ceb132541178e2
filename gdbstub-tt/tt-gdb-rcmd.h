/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Monitor commands that gdb sends: gdb can be heard while they run.
 *
 * Context: main thread, BQL held.
 */
#ifndef TT_GDB_RCMD_H
#define TT_GDB_RCMD_H

/* Has a gdb that waits for the monitor's command left it? */
bool tt_gdb_gave_up(void);
/* A byte of gdb's that is kept until the command is carried out. */
bool tt_gdb_rcmd_takes(uint8_t byte);

#endif
