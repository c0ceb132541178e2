/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * -tt replay,plugin=FROM-TO: a plugin of QEMU's TCG sees the instructions of a part of
 * the run, and no others.
 *
 *   start --goto--> FROM --install the plugin--run--> TO --> leave
 *
 * On the way to FROM there is no plugin, so no block has calls of it. At FROM, between
 * two turns of the vCPU, all blocks are dropped and the plugin is installed; the first
 * block that is translated then begins with the instruction at FROM. The vCPU's budget
 * ends at TO: a block that is too long for it is left before its first instruction. The
 * movement there is a straight one, so every digest of the log is compared.
 *
 * What comes of it goes to stdout, a line each, for `tt run-plugin`:
 *
 *   tt-plugin begin position=P                     the plugin is installed
 *   tt-plugin span from=P to=P instructions=N digests=N
 *   tt-plugin diverged|damaged position=P text=...
 *   tt-plugin failed text=...
 *   tt-plugin end code=N whole=0|1
 *
 * The plugin's own end (its atexit callback) comes after that, when the process ends.
 *
 * Context: the vCPU thread, from travel's callbacks; main thread for the option.
 */
#include "qemu/osdep.h"
#include "plugin/tt-plugin.h"
#include "accel-tt/tt-position.h"
#include "accel-tt/tt-vcpus.h"
#include "replay/tt-replay-apply.h"
#include "replay/tt-replay-exact.h"
#include "replay/tt-replay-log.h"
#include "session/tt-events.h"
#include "session/tt-session.h"
#include "timeline/tt-timeline.h"
#include "travel/tt-retrace.h"
#include "travel/tt-travel.h"
#include "tt/hooks.h"
#include "qapi/error.h"
#include "hw/core/cpu.h"
#include "exec/tb-flush.h"
#include "exec/translation-block.h"
#include "qemu/plugin.h"
#include "system/runstate.h"
#include "system/system.h"

static struct {
    bool on;
    uint64_t from, to;          /* UINT64_MAX: the end of the run */
    QemuPluginList plugins;     /* one; it is out of the list when it is installed */
    uint64_t began, n_before;   /* there; instructions before it */
    uint64_t digests;           /* compared before it */
} task;

static void say(const char *fmt, ...)
    G_GNUC_PRINTF(1, 2);

static void say(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    tt_tell_tool("tt-plugin", fmt, ap);
    va_end(ap);
}

/* Exit statuses of the tt tool: a replay that was not exact ends with 3. */
static void leave(int reason, Error *err)
{
    bool whole = (reason == TT_STOP_TARGET || reason == TT_STOP_END) && !err;
    int code = whole ? 0 : reason == TT_STOP_DIVERGED ? 3 : 1;

    if (err) {
        say("failed text=%s", error_get_pretty(err));
        error_free(err);
    } else if (!whole) {
        say("%s position=%" PRIu64 " text=%s", tt_stop_name(reason), tt_now.pos,
            reason == TT_STOP_INTERRUPTED ? "interrupted" :
            tt_replayer.divergence ?: "for no reason given");
    }
    say("end code=%d whole=%d", code, whole);
    qemu_system_shutdown_request_with_code(SHUTDOWN_CAUSE_HOST_QMP_QUIT, code);
}

static void at_end(void *opaque, uint64_t pos, int reason)
{
    say("span from=%" PRIu64 " to=%" PRIu64 " instructions=%" PRIu64 " digests=%" PRIu64,
        task.began, pos, tt_backend->begun() - task.n_before,
        tt_replay_digests() - task.digests);
    for (unsigned i = 0; i < tt_vcpus_count(); i++) {
        tt_vcpus_at(i)->stop = true;    /* not one instruction more until the end */
    }
    leave(reason, NULL);
}

/*
 * QEMU tells a plugin of a vCPU when that is created, which was long ago: the vCPUs
 * leave and come again, so that this one hears of them. Nobody else listens.
 */
static bool install(Error **errp)
{
    for (unsigned i = 0; i < tt_vcpus_count(); i++) {
        qemu_plugin_vcpu_exit_hook(tt_vcpus_at(i));
    }
    if (qemu_plugin_load_list(&task.plugins, errp)) {
        return false;
    }
    for (unsigned i = 0; i < tt_vcpus_count(); i++) {
        qemu_plugin_vcpu_init_hook(tt_vcpus_at(i));
    }
    for (unsigned i = 0; i < tt_vcpus_count(); i++) {
        /* A block may serve all addresses at which its page is mapped, and a plugin is told
         * of the first one only. */
        tt_vcpus_at(i)->tcg_cflags &= ~CF_PCREL;
    }
    tb_flush(tt_vcpu());
    tt_vcpus_do_work();         /* all of this was only queued */
    return true;
}

static void at_beginning(void *opaque, uint64_t pos, int reason)
{
    Error *err = NULL;

    if (reason != TT_STOP_TARGET) {
        leave(reason == TT_STOP_END ? TT_STOP_NONE : reason, NULL);
        return;
    }
    if (!install(&err)) {
        leave(TT_STOP_NONE, err);
        return;
    }
    task.began = pos;
    task.n_before = tt_backend->begun();
    task.digests = tt_replay_digests();
    say("begin position=%" PRIu64, pos);
    if (!tt_travel_run(MIN(task.to, INT64_MAX), at_end, NULL, &err)) {
        leave(TT_STOP_NONE, err);
    }
}

static void begin(void)
{
    uint64_t first = tt_replay_first(), last = tt_replay_end();
    Error *err = NULL;

    task.from = MAX(task.from, first);
    if (task.from >= MIN(last, task.to) || (task.to != UINT64_MAX && task.to > last)) {
        error_setg(&err, "the run goes from position %" PRIu64 " to %" PRIu64 ": give "
                   "the plugin a part of that", first, last);
    }
    if (err || !tt_travel_goto(task.from, at_beginning, NULL, &err)) {
        leave(TT_STOP_NONE, err);
    }
}

uint64_t tt_plugin_position(void)
{
    return tt_position();
}

const uint64_t *tt_plugin_interrupts(void)
{
    return tt_replay_interrupts();
}

/* ---- the option ---- */

bool tt_plugin_is_on(void)
{
    return task.on;
}

bool tt_plugin_option(const char *part, const char *load, Error **errp)
{
    static const TtTravelTask travel_task = { .begin = begin };

    if (!load) {
        error_setg(errp, "plugin needs a plugin to load: add plugin-load=FILE");
        return false;
    }
    if (!tt_part_parse(part, &task.from, &task.to)) {
        error_setg(errp, "plugin takes 'all' or two positions, FROM-TO, not '%s'", part);
        return false;
    }
    QTAILQ_INIT(&task.plugins);
    qemu_plugin_opt_parse(load, &task.plugins);     /* exits on a bad one */
    task.on = true;
    tt_travel_set_task(&travel_task);
    return true;
}
