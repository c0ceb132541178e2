/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Coverage by source lines, as lcov writes it (man geninfo, "FILES"). */
#ifndef TT_TOOL_LCOV_H
#define TT_TOOL_LCOV_H

#include "tt-tool.h"

#include <stdio.h>

bool tool_lcov_is_built(void);
/* Does @program have DWARF? False: said that it has not. */
bool tool_lcov_check(const char *program);
/*
 * A tracefile of @program, an ELF file that is linked, at addresses that are @offset
 * higher than it says. @sums: how often each instruction was executed, char * of
 * "0xADDRESS+LENGTH" -> uint64_t *. All lines are in it, also those that were not
 * executed. False: said why not.
 */
bool tool_lcov_put(FILE *to, const char *program, uint64_t offset, GHashTable *sums);

#endif
