/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A disk with versions, of which one block of the file is damaged.
 *
 * Context: one thread.
 */
#ifndef BLOCKMAP_DAMAGE_H
#define BLOCKMAP_DAMAGE_H

#include "io/tt-io.h"

/*
 * Opens a copy of @file with each block of @unit bytes damaged in turn, in some ways. What
 * is found must be the state that is found without damage, or an error, or a disk that
 * says that it is damaged. NULL: it always was; else a sentence, and which block in @at.
 */
const char *blockmap_damage_each(TtIo *file, unsigned unit, uint64_t *at);

#endif
