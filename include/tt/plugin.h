/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What QEMU with TTVM offers to plugins of its TCG, beside QEMU's own interface. In another
 * QEMU a plugin that asks for it works, and gets 0.
 *
 * Context: a callback of the plugin, on the vCPU's thread.
 */
#ifndef TT_PLUGIN_API_H
#define TT_PLUGIN_API_H

#include <stdint.h>

uint64_t tt_plugin_position(void) __attribute__((weak));

/* The position behind the block that is executed. Of an instruction that ends its block,
 * that is one more than its own. Cost: O(1). */
static inline uint64_t tt_position_behind_block(void)
{
    return tt_plugin_position ? tt_plugin_position() : 0;
}

#endif
