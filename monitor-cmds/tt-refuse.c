/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Monitor commands that would be an input of the guest. A replay has all inputs
 * in its log and no device to take another, so it refuses them instead of doing
 * nothing in silence. QEMU's tables of commands are changed once, at start.
 */
#include "tt/engine.h"
#include "monitor/monitor-internal.h"
#include "monitor/monitor.h"
#include "monitor/hmp.h"

static const char reason[] =
    "a replay takes no input, the log says what happened";

static void refuse(Monitor *mon, const QDict *qdict)
{
    Error *err = NULL;

    error_setg(&err, "%s", reason);
    hmp_handle_error(mon, err);
}

static void refuse_hmp(const char *name)
{
    for (HMPCommand *c = hmp_cmds; c->name; c++) {
        if (!strcmp(c->name, name)) {
            c->cmd = refuse;
            c->coroutine = false;
        }
    }
}

void tt_monitor_refuse_input(void)
{
    static const char *const qmp[] = {
        "system_reset", "system_powerdown", "system_wakeup", "inject-nmi",
        "send-key", "input-send-event", "device_add",
    };
    static const char *const hmp[] = {
        "system_reset", "system_powerdown", "system_wakeup", "nmi", "sendkey",
        "mouse_move", "mouse_button", "mce", "o", "device_add",
    };

    for (size_t i = 0; i < ARRAY_SIZE(qmp); i++) {
        qmp_disable_command(&qmp_commands, qmp[i], reason);
    }
    for (size_t i = 0; i < ARRAY_SIZE(hmp); i++) {
        refuse_hmp(hmp[i]);
    }
}
