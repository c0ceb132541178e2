/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Is the replay exact? Digests of the log are compared; a difference is a divergence:
 * the VM stops there, with one sentence, and stays inspectable; going back to an
 * earlier position clears it. A log that cannot be read on stops the VM in the same
 * way, and is called damage.
 */
#include "qemu/osdep.h"
#include "replay/tt-replay-exact.h"
#include "accel-tt/tt-position.h"
#include "accel-tt/tt-vcpus.h"
#include "hw-tt/memory/tt-memory.h"
#include "io/tt-base.h"
#include "log/tt-log.h"
#include "log/tt-sched.h"
#include "replay/tt-replay-driver.h"
#include "replay/tt-replay-log.h"
#include "replay/tt-stop.h"
#include "session/tt-events.h"
#include "session/tt-session.h"
#include "timeline/tt-timeline.h"
#include "qapi/error.h"
#include "qemu/error-report.h"

static struct {
    uint64_t digests;
    uint64_t last_equal;            /* position */
} ex;

uint64_t tt_replay_digests(void)
{
    return ex.digests;
}

uint64_t tt_replay_last_equal(void)
{
    return ex.last_equal <= tt_now.pos ? ex.last_equal : 0;
}

void tt_replay_exact_reset(void)
{
    memset(&ex, 0, sizeof(ex));
}

/* ---- divergence and damage ---- */

int tt_replay_failure(void)
{
    return tt_replayer.damaged ? TT_STOP_DAMAGED : TT_STOP_DIVERGED;
}

static void stop_in_trouble(char *why)
{
    g_free(tt_replayer.divergence);
    tt_replayer.divergence = why;
    if (tt_replay_driver->is_active()) {
        tt_replay_driver->ended(tt_replay_failure());
    } else if (!tt_replay_driver->is_restoring()) {
        tt_stop_vm(tt_replay_failure());
    }
}

static void cannot_go_on(char *why)
{
    tt_replayer.diverged = tt_replayer.damaged = true;
    error_printf("tt: the replay cannot go on from position %" PRIu64 ": %s\n",
                 tt_position(), why);
    stop_in_trouble(why);
}

void tt_replay_damaged(const TtDiag *diag)
{
    if (!tt_replayer.diverged) {
        cannot_go_on(g_strdup(diag->text));
    }
}

/* The last place up to @pos where the log only names what came in. */
static bool last_named(uint64_t pos, uint64_t *at)
{
    TtLogReader *r = tt_replay_reader();
    bool is_found = false;
    TtSegment *seg;

    for (uint64_t n = tt_log_reader_find(r, pos) + 1;
         !is_found && n-- > tt_log_reader_first(r);) {
        if (tt_log_reader_load(r, n, &seg, NULL) != TT_OK) {
            *at = tt_log_reader_info(r, n)->end_pos;
            return true;
        }
        for (uint32_t i = seg->n_events; !is_found && i-- > 0;) {
            is_found = tt_event_is_named(seg->events[i].kind) &&
                seg->events[i].pos <= pos;
            *at = seg->events[i].pos;
        }
        tt_segment_unref(seg);
    }
    return is_found;
}

/* Where the positions begin that lead here with nothing that is missing between. */
static uint64_t reachable_from(void)
{
    uint64_t from = tt_replay_driver->came_from(), named;

    if (from == tt_replay_first()) {
        return from;
    }
    return last_named(from, &named) ? MIN(from, tt_replay_driver->next_checkpoint(named)) :
        tt_replay_first();
}

/* Something that tt info misses, too: of an image that has changed it knows nothing. */
static bool knows_info(void)
{
    const TtManifest *m = &tt_session.manifest;

    for (unsigned i = 0; i < m->n_disks; i++) {
        g_autofree char *path = g_build_filename(tt_session.dir, m->disks[i], NULL);

        if (!g_file_test(path, G_FILE_TEST_EXISTS)) {
            return true;
        }
    }
    return m->features & TT_FEATURE_FRAMES;
}

void tt_replay_lacks(const TtDiag *diag)
{
    uint64_t next = tt_replay_driver->next_checkpoint(tt_position());
    g_autofree char *more = next == UINT64_MAX ? g_strdup("") :
        g_strdup_printf(", and by tt goto those from the checkpoint at position %" PRIu64
                        " up to the next such place", next);

    if (!tt_replayer.diverged) {
        cannot_go_on(g_strdup_printf("%s; positions %" PRIu64 " to %" PRIu64 " can still be "
                                     "reached%s%s", diag->text, reachable_from(),
                                     tt_position(), more, knows_info() ?
                                     "; tt info lists all" : ""));
    }
}

char *tt_replay_other_release(void)
{
    const char *by = tt_session.manifest.qemu_version;

    return g_strcmp0(by, QEMU_VERSION) ? g_strescape(by ?: "", NULL) : NULL;
}

void tt_replay_report(const char *fmt, ...)
{
    g_autofree char *context = tt_sched_context(tt_replay_sched(), 6, 4);
    g_autofree char *release = tt_replay_other_release();
    char *why;
    va_list ap;

    if (tt_replayer.diverged) {
        return;
    }
    tt_replayer.diverged = true;
    va_start(ap, fmt);
    why = g_strdup_vprintf(fmt, ap);
    va_end(ap);
    error_printf("tt: diverged at position %" PRIu64 ": %s\n", tt_position(),
                 why);
    error_printf("tt: the log around it:\n%s", context);
    if (release) {
        error_printf("tt: the run was recorded with QEMU %s, and this is "
                     QEMU_VERSION ": releases fix instructions, so replay it with the "
                     "same release\n",
                     release);
    }
    tt_tell_diverged(tt_position(), why);
    stop_in_trouble(why);
}

bool tt_replay_ends_in_damage(void)
{
    const TtDiag *damage = tt_log_reader_damage(tt_replay_reader());

    if (damage) {
        tt_replay_damaged(damage);
    }
    return damage;
}

/* ---- digests ---- */

/* A digest of the log says so. */
static void differs(const char *what, uint64_t seen, uint64_t want)
{
    g_autofree char *why = g_strdup_printf("%s differs from the recording (digest "
                                           "%016" PRIx64 ", recorded %016" PRIx64 ")",
                                           what, seen, want);

    if (!tt_replay_driver->goes_on(why)) {
        tt_replay_report("%s", why);
    }
}

void tt_replay_check(const TtEvent *ev)
{
    uint64_t cpu_digest = tt_vcpus_digest();
    bool full = ev->kind == TT_EV_DIGEST;
    uint64_t want = full ? ev->addr : ev->val;
    uint64_t ram = full ? tt_memory_digest() : 0;

    ex.digests++;
    if (cpu_digest != want) {
        differs("the CPU state", cpu_digest, want);
    } else if (full && ram != ev->val) {
        differs("the memory", ram, ev->val);
    } else if (!full && ev->addr != tt_now.output_hash) {
        differs("what the guest wrote to its devices", tt_now.output_hash,
                ev->addr);
    } else {
        ex.last_equal = tt_now.pos;
    }
}
