/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The guest's serial console in a replay, from its writes to COM1.
 */
#include "qemu/osdep.h"
#include "replay/tt-replay-console.h"
#include "replay/tt-replay-driver.h"
#include "tt/hooks.h"
#include "system/system.h"
#include "chardev/char-fe.h"

void tt_replay_console(uint32_t port, uint32_t val, unsigned size)
{
    static CharBackend fe;
    static bool tried, connected;
    static uint8_t line_control;
    uint8_t byte = val;

    if (port == 0x3fb) {
        line_control = val;
    }
    if (port != 0x3f8 || (line_control & 0x80) || tt_replay_driver->is_active() ||
        tt_past) {
        return;
    }
    if (!tried) {
        tried = true;
        connected = serial_hd(0) &&
            qemu_chr_fe_init(&fe, serial_hd(0), NULL);
    }
    if (connected) {
        qemu_chr_fe_write_all(&fe, &byte, 1);
    }
}
