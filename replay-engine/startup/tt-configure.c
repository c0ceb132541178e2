/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Before the machine is made: what else the command line wants is refused if it does
 * not go with -tt, and a run that is replayed is opened.
 */
#include "qemu/osdep.h"
#include "accel-tt/kvm/tt-kvm.h"
#include "branch/tt-branch.h"
#include "control/tt-describe.h"
#include "control/tt-recordable.h"
#include "convert/tt-convert.h"
#include "gdbstub-tt/tt-gdb.h"
#include "replay/tt-replay.h"
#include "replay/tt-stop.h"
#include "session/tt-events.h"
#include "startup/tt-options.h"
#include "startup/tt-startup.h"
#include "tt/hooks.h"
#include "tt-tasks-int.h"
#include "qapi/error.h"
#include "qemu/error-report.h"
#include "qemu/option.h"
#include "qemu/config-file.h"
#include "qobject/qdict.h"
#include "qapi/qapi-types-ui.h"
#include "hw/boards.h"
#include "system/system.h"

static const char *unwanted_machine_option(QDict *opts)
{
    const QDictEntry *e;

    for (e = qdict_first(opts); e; e = qdict_next(opts, e)) {
        const char *key = qdict_entry_key(e);

        if (strcmp(key, "accel") && strcmp(key, "graphics")) {
            return key;
        }
    }
    return NULL;
}

/* The option of @key, as people write it; it may have been written as -machine KEY=. */
static char *machine_option_name(const char *key)
{
    static const char *const own[] = {
        "append", "boot", "dtb", "initrd", "kernel", "smp", "usb",
    };

    if (!strcmp(key, "type")) {
        return g_strdup("-machine");
    }
    if (!strcmp(key, "firmware")) {
        return g_strdup("-bios (or firmware= of -machine)");
    }
    for (size_t i = 0; i < ARRAY_SIZE(own); i++) {
        if (!strcmp(key, own[i])) {
            return g_strdup_printf("-%s (or %s= of -machine)", key, key);
        }
    }
    return g_strdup_printf("-machine %s=", key);
}

/* A replay has no devices: do not ignore the wish for one silently. */
static void refuse_devices(void)
{
    static const struct {
        const char *group, *option;
    } groups[] = {
        { "device", "-device" }, { "netdev", "-netdev" }, { "memory", "-m" },
        { "drive", "-drive (or -hda, -cdrom and the like)" },
    };

    for (size_t i = 0; i < ARRAY_SIZE(groups); i++) {
        QemuOptsList *list = qemu_find_opts(groups[i].group);

        if (list && !QTAILQ_EMPTY(&list->head)) {
            tt_refuse("-tt replay takes the machine from the run and has no devices: "
                      "leave out %s", groups[i].option);
        }
    }
}

/* KVM asks for it while it is made: before anybody can change the machine. */
static void turn_smm_off(QDict *machine_opts)
{
    const char *smm = qdict_get_try_str(machine_opts, "smm");

    if (smm && strcmp(smm, "off") && strcmp(smm, "auto")) {
        tt_refuse("%s: system management mode cannot be recorded under KVM: "
                  "leave out smm=%s", tt_option_name(), smm);
    }
    qdict_put_str(machine_opts, "smm", "off");
}

static bool use_accel(const char *name, const char *option)
{
    if (!name || !strcmp(name, "tcg")) {
        return false;
    }
    if (strcmp(name, "kvm")) {
        tt_refuse("-tt works with accelerator tcg or kvm only: leave out %s%s", option,
                  name);
    }
    if (tt_replaying()) {
        tt_refuse("-tt replay works with -accel tcg only: leave out %skvm", option);
    }
    if (tt_options_are_branch()) {
        tt_refuse("-tt branch works with -accel tcg only: leave out %skvm", option);
    }
    return true;
}

static int check_accel(void *opaque, QemuOpts *opts, Error **errp)
{
    bool *is_kvm = opaque;

    *is_kvm |= use_accel(qemu_opt_get(opts, "accel"), "-accel ");
    return 0;
}

/* Before QEMU tries to open it, and says first that it cannot. */
static void check_accels(QDict *machine_opts)
{
    bool is_kvm = use_accel(qdict_get_try_str(machine_opts, "accel"), "accel=");

    qemu_opts_foreach(qemu_find_opts("accel"), check_accel, &is_kvm, NULL);
    if (is_kvm) {
        turn_smm_off(machine_opts);
        tt_kvm_configure();
    }
}

/* Or QMP. "none" is no monitor. */
static bool has_monitor(void)
{
    return !QTAILQ_EMPTY(&qemu_find_opts("mon")->head);
}

void tt_configure(QDict *machine_opts, bool has_default_serial,
                  int *default_monitor, bool *nographic, void *display_type,
                  bool has_icount, bool has_incoming, bool stopped)
{
    Error *err = NULL;
    DisplayType *display = display_type;

    if (has_icount) {
        tt_refuse("%s", tt_on() ? tt_no_icount :
                  "-tt ready and -icount exclude each other: leave out -icount");
    }
    if (has_incoming && tt_on()) {
        tt_refuse("-tt cannot start from an incoming migration or a snapshot: leave out "
                  "-incoming and -loadvm");
    }
    check_accels(machine_opts);
    if (!tt_on()) {
        return;                     /* -tt ready */
    }
    if (tt_recording()) {
        tt_describe_recording();
        if (!tt_branch_open(&err)) {
            error_reportf_err(err, "-tt branch: ");
            exit(1);
        }
        return;
    }
    tt_tell_refuse_input(true);
    if (tt_convert_is_on() ? !tt_convert_open(&err) :
        !tt_convert_if_needed(&err) || !tt_replay_open(&err)) {
        error_reportf_err(err, "-tt replay: ");
        exit(1);
    }
    refuse_devices();
    if (unwanted_machine_option(machine_opts)) {
        tt_refuse("-tt replay takes the machine from the run: leave out %s",
                  machine_option_name(unwanted_machine_option(machine_opts)));
    }
    if (tt_tasks_is_one()) {
        tt_at_end_exit = false;     /* it has an end of its own */
    } else if (!tt_options_say_at_end()) {
        tt_at_end_exit = !stopped && !has_monitor() && !tt_gdb_wanted();
    }
    qdict_put_str(machine_opts, "type", "tt-replay");
    if (*display == DISPLAY_TYPE_DEFAULT) {
        *display = DISPLAY_TYPE_NONE;
    }
    *nographic = true;
    if (!has_default_serial || tt_at_end_exit || tt_tasks_is_one()) {
        *default_monitor = 0;       /* stdio, if used, is the console's */
    }
}
