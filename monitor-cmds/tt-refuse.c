/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Monitor commands that would be an input of the guest. A replay has all inputs
 * in its log and no device to take another, so it refuses them instead of doing
 * nothing in silence; so does a recording whose past is shown, and there also
 * what would look at the present's memory.
 */
#include "qemu/osdep.h"
#include "monitor-cmds/tt-refuse.h"
#include "session/tt-session.h"
#include "tt/hooks.h"
#include "qapi/error.h"
#include "monitor/monitor-internal.h"
#include "monitor/monitor.h"
#include "monitor/hmp.h"

static const char no_input[] =
    "a replay takes no input: all input comes from the log";
static const char in_past[] =
    "the past of the recording is shown, which takes no input: " TT_RETURN_FIRST;
static const char no_dump[] =
    "the past of the recording is shown, but this would dump the present: "
    TT_RETURN_FIRST;

static const char *const qmp_inputs[] = {
    "system_reset", "system_powerdown", "system_wakeup", "inject-nmi",
    "send-key", "input-send-event", "device_add", "device_del", "balloon",
};

/* They would dump the present. */
static const char *const qmp_dumps[] = { "pmemsave", "dump-guest-memory" };

static struct {
    const char *name;
    void (*cmd)(Monitor *mon, const QDict *qdict);  /* while it is refused */
    bool coroutine;
    bool dumps;
} hmp_inputs[] = {
    { "system_reset" }, { "system_powerdown" }, { "system_wakeup" }, { "nmi" },
    { "sendkey" }, { "mouse_move" }, { "mouse_button" }, { "mce" }, { "o" },
    { "i" },                            /* a port that is read may change its device */
    { "device_add" }, { "device_del" }, { "balloon" },
    { "pmemsave", .dumps = true }, { "dump-guest-memory", .dumps = true },
};

static void refuse(Monitor *mon, const QDict *qdict)
{
    Error *err = NULL;

    error_setg(&err, "%s", tt_past ? in_past : no_input);
    hmp_handle_error(mon, err);
}

static void refuse_dump(Monitor *mon, const QDict *qdict)
{
    Error *err = NULL;

    error_setg(&err, "%s", no_dump);
    hmp_handle_error(mon, err);
}

static HMPCommand *find_hmp(const char *name)
{
    for (HMPCommand *c = hmp_cmds; c->name; c++) {
        if (!strcmp(c->name, name)) {
            return c;
        }
    }
    return NULL;
}

static void turn_hmp(bool on)
{
    for (size_t i = 0; i < ARRAY_SIZE(hmp_inputs); i++) {
        HMPCommand *c = find_hmp(hmp_inputs[i].name);
        void (*refusal)(Monitor *, const QDict *) = hmp_inputs[i].dumps ? refuse_dump :
            refuse;

        if (hmp_inputs[i].dumps && on && !tt_past) {
            continue;
        }
        if (c && on && c->cmd != refusal) {
            hmp_inputs[i].cmd = c->cmd;
            hmp_inputs[i].coroutine = c->coroutine;
            c->cmd = refusal;
            c->coroutine = false;
        } else if (c && !on && c->cmd == refusal) {
            c->cmd = hmp_inputs[i].cmd;
            c->coroutine = hmp_inputs[i].coroutine;
        }
    }
}

static void turn_qmp(const char *const *names, size_t n, bool on,
                     const char *why)
{
    for (size_t i = 0; i < n; i++) {
        if (on) {
            qmp_disable_command(&qmp_commands, names[i], why);
        } else {
            qmp_enable_command(&qmp_commands, names[i]);
        }
    }
}

void tt_monitor_refuse_input(bool on)
{
    turn_qmp(qmp_inputs, ARRAY_SIZE(qmp_inputs), on,
             tt_past ? in_past : no_input);
    if (tt_past || !on) {
        turn_qmp(qmp_dumps, ARRAY_SIZE(qmp_dumps), on, no_dump);
    }
    turn_hmp(on);
}
