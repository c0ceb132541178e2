/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The plugin races: tt-races.c has the accesses, tt-races-locks.c the functions that take
 * and give locks.
 *
 * Context: callbacks of the plugin; one vCPU runs at a time, on one thread.
 */
#ifndef TT_RACES_H
#define TT_RACES_H

#include "plugins-tt/race/tt-race.h"

#include <glib.h>
#include <qemu-plugin.h>

extern TtRace *races;

/* Interrupts that @vcpu took come before what it does next. */
void races_take_interrupts(unsigned vcpu);

/* ---- tt-races-locks.c ---- */

/* lock=, unlock=, argument=: False: it is none of these, or wrong. */
bool races_locks_option(const char *name, const char *value);
/* Of the vCPU that begins; they are the same for all. */
void races_locks_begin(void);
/* A block, and an instruction of it, are translated. True: it is of a function whose
 * insides are not looked at. */
void races_locks_block(struct qemu_plugin_tb *tb);
bool races_locks_instruction(struct qemu_plugin_insn *insn, uint64_t addr);

/* A register of the vCPU that runs, in a callback that may read them; 0: it has none of
 * that name. */
uint64_t races_register(const char *name);

#endif
