/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A plugin for QEMU's TCG: how many instructions began at each address, as folded stacks
 * of two frames. `tt run-plugin --symbols` makes functions of the addresses, and adds up.
 */
#include "tt-places.h"

QEMU_PLUGIN_EXPORT int qemu_plugin_version = QEMU_PLUGIN_VERSION;

/* The upper half of the addresses is the kernel's. */
static void line(GString *s, const Place *p, uint64_t count)
{
    g_string_append_printf(s, "%s;0x%" PRIx64 " %" PRIu64 "\n",
                           p->addr >> 63 ? "kernel" : "low", p->addr, count);
}

static void at_exit(qemu_plugin_id_t id, void *opaque)
{
    places_print(line);
}

QEMU_PLUGIN_EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info,
                                           int argc, char **argv)
{
    return places_install(id, argc, argv, at_exit);
}
