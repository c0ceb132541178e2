/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What our packets share: their registration, answers, numbers in hex.
 *
 * Context: main thread, BQL held.
 */
#ifndef TT_GDB_PACKETS_INT_H
#define TT_GDB_PACKETS_INT_H

struct GdbCmdParseEntry;        /* gdbstub/commands.h, which is included once */

#define TT_GDB_ANSWER_BYTES 2000        /* QEMU's packets have twice as much */

/* Packets that gdb may send; @queries stays valid. Once, before gdb is there. */
void tt_gdb_add_queries(const struct GdbCmdParseEntry *queries, size_t n);
void tt_gdb_put_error(Error *err);      /* as an answer; frees @err */
/* Numbers in hex with commas between them; how many, 0 if they are none. */
unsigned tt_gdb_parse_list(const char *text, uint64_t *values, unsigned most);

#endif
