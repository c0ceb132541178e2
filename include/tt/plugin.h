/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What QEMU with TTVM offers to plugins of its TCG, beside QEMU's own interface. In another
 * QEMU a plugin that asks for it works, and gets 0 or NULL.
 *
 * Context: a callback of the plugin, on the vCPU's thread.
 */
#ifndef TT_PLUGIN_API_H
#define TT_PLUGIN_API_H

#include <stdint.h>

uint64_t tt_plugin_position(void) __attribute__((weak));
const uint64_t *tt_plugin_interrupts(void) __attribute__((weak));

/* The position behind the block that is executed. Of an instruction that ends its block,
 * that is one more than its own. Cost: O(1). */
static inline uint64_t tt_position_behind_block(void)
{
    return tt_plugin_position ? tt_plugin_position() : 0;
}

/* How often each vCPU was interrupted, or started, so far: eight counts, which go on
 * changing while the plugin has the pointer; by its index. */
static inline const uint64_t *tt_interrupts_of_vcpus(void)
{
    return tt_plugin_interrupts ? tt_plugin_interrupts() : NULL;
}

#endif
