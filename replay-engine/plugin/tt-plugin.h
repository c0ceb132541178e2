/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A TCG plugin over a part of a replay.
 *
 * Context, unless said otherwise: the BQL is held.
 */
#ifndef TT_PLUGIN_H
#define TT_PLUGIN_H

/*
 * The option: -tt replay,plugin=FROM-TO,plugin-load=FILE[,,NAME=VALUE...], where what
 * stands after plugin-load= is what QEMU's -plugin takes. False: *errp. The process
 * then replays that part with the plugin, says what came of it, and ends.
 */
bool tt_plugin_option(const char *part, const char *load, Error **errp);
bool tt_plugin_is_on(void);

/* For plugins, which find it by its name: the position behind the block that is executed.
 * Exact, minus one, for an instruction that ends its block. Context: the vCPU thread, in a
 * plugin's callback. */
uint64_t tt_plugin_position(void);
/* The same: tt_replay_interrupts. */
const uint64_t *tt_plugin_interrupts(void);

#endif
