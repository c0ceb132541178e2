/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Flight recorder: which thread does what.
 *
 *   writer             seals segments; when a part is long enough, begins the next file
 *   checkpointer       takes checkpoints often enough (tt-checkpointer.c)
 *   checkpoint store   stores one; then deletes those that are too old, and when that is
 *                      on disk, the parts of the log before the oldest that is left
 *
 * So at any moment the files are a window that can be replayed: nothing needs the files
 * that are deleted first. A kill between two steps leaves parts too many. Time is that
 * of the VM's clock: while the VM stands nothing gets older.
 */
#include "qemu/osdep.h"
#include "record/tt-flight.h"
#include "accel-tt/tt-position.h"
#include "io/tt-base.h"
#include "io/tt-io.h"
#include "log/tt-log.h"
#include "log/tt-logparts.h"
#include "log/tt-window.h"
#include "pages/tt-page.h"
#include "record/tt-record-options.h"
#include "record/tt-rundir.h"
#include "session/tt-session.h"
#include "qemu/timer.h"

static GMutex lock;

static struct {
    bool on;
    TtWindow *window;
    char *dir;
    TtWindowLimits limits;
    uint32_t part;                  /* the newest */
    TtLogPlace part_at;
    TtWindowPoint taking;
    uint64_t log_bytes;             /* read without the lock */
    uint64_t start;                 /* the same */
} fl;

static void note(void)
{
    TtWindowPoint first = { 0 };

    tt_window_first(fl.window, &first);
    qatomic_set(&fl.log_bytes, tt_window_log_bytes(fl.window));
    qatomic_set(&fl.start, tt_window_oldest_part(fl.window) > 1 ? first.pos :
                0);
}

void tt_flight_begin(void)
{
    if (!tt_record_options.window_ns) {
        return;
    }
    fl.limits = (TtWindowLimits) { .ns = tt_record_options.window_ns };
    fl.window = tt_window_new(&fl.limits);
    fl.dir = g_strdup(tt_session.dir);
    qatomic_set(&fl.on, true);
}

void tt_flight_end(void)
{
    tt_window_free(fl.window);
    g_free(fl.dir);
    fl = (typeof(fl)) { 0 };
}

bool tt_flight_is_on(void)
{
    return qatomic_read(&fl.on);
}

void tt_flight_limit_log(uint64_t bytes)
{
    if (fl.on) {
        g_mutex_lock(&lock);
        qatomic_set(&fl.limits.log_bytes, bytes);
        tt_window_set_limits(fl.window, &fl.limits);
        g_mutex_unlock(&lock);
    }
}

uint64_t tt_flight_log_bytes(void)
{
    return qatomic_read(&fl.log_bytes);
}

uint64_t tt_flight_start(void)
{
    return qatomic_read(&fl.start);
}

/* ---- the log ---- */

TtStatus tt_flight_create_part(TtIo **io, TtDiag *diag)
{
    g_autofree char *path = tt_logparts_path(fl.dir, fl.part + 1);

    if (!tt_rundir_is_ours()) {
        return tt_fail(diag, TT_ERR_IO, "'%s' was deleted or moved", fl.dir);
    }
    return tt_io_posix_create(path, io, diag);
}

void tt_flight_part_begun(const TtLogPlace *at)
{
    g_mutex_lock(&lock);
    fl.part++;
    fl.part_at = *at;
    tt_window_begin_part(fl.window, fl.part, at->segment);
    g_mutex_unlock(&lock);
}

void tt_flight_grew(uint64_t bytes, TtLogPlace end)
{
    if (fl.on) {
        g_mutex_lock(&lock);
        tt_window_grow(fl.window, bytes, end.segment);
        note();
        g_mutex_unlock(&lock);
    }
}

bool tt_flight_wants_part(void)
{
    bool wants;

    g_mutex_lock(&lock);
    wants = fl.on && tt_window_wants_part(fl.window);
    g_mutex_unlock(&lock);
    return wants;
}

uint32_t tt_flight_newest_part(TtLogPlace *at)
{
    uint32_t part;

    g_mutex_lock(&lock);
    *at = fl.part_at;
    part = fl.part;
    g_mutex_unlock(&lock);
    return part;
}

uint32_t tt_flight_oldest_part(void)
{
    uint32_t part;

    g_mutex_lock(&lock);
    part = fl.on ? tt_window_oldest_part(fl.window) : 0;
    g_mutex_unlock(&lock);
    return part;
}

/* ---- checkpoints ---- */

void tt_flight_taking(uint64_t seq)
{
    if (fl.on) {
        fl.taking = (TtWindowPoint) {
            .pos = tt_now.pos, .seq = seq,
            .ns = qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL),
        };
    }
}

bool tt_flight_wants_point(void)
{
    bool wants;

    if (!fl.on) {
        return false;
    }
    g_mutex_lock(&lock);
    wants = tt_window_wants_point(fl.window);
    g_mutex_unlock(&lock);
    return wants;
}

void tt_flight_enter(TtNodeId id)
{
    if (fl.on) {
        g_mutex_lock(&lock);
        fl.taking.id = id;
        tt_window_add(fl.window, &fl.taking);
        note();
        g_mutex_unlock(&lock);
    }
}

void tt_flight_forget(TtNodeId id)
{
    if (fl.on) {
        g_mutex_lock(&lock);
        tt_window_remove(fl.window, id);
        note();
        g_mutex_unlock(&lock);
    }
}

TtNodeId tt_flight_surplus(void)
{
    TtNodeId id = 0;

    if (fl.on) {
        uint64_t now = qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL);

        g_mutex_lock(&lock);
        id = tt_window_surplus(fl.window, now);
        g_mutex_unlock(&lock);
    }
    return id;
}

TtNodeId tt_flight_oldest(TtNodeId *next)
{
    TtWindowPoint first = { 0 };

    if (fl.on) {
        g_mutex_lock(&lock);
        *next = tt_window_second(fl.window);
        if (*next) {
            tt_window_first(fl.window, &first);
        }
        g_mutex_unlock(&lock);
    }
    return first.id;
}

bool tt_flight_has_spent(void)
{
    bool has;

    g_mutex_lock(&lock);
    has = fl.on && tt_window_spent_part(fl.window);
    g_mutex_unlock(&lock);
    return has;
}

static uint32_t take_spent_part(void)
{
    uint32_t part;

    g_mutex_lock(&lock);
    part = tt_window_spent_part(fl.window);
    if (part) {
        tt_window_drop_part(fl.window);
        note();
    }
    g_mutex_unlock(&lock);
    return part;
}

bool tt_flight_drop_parts(void)
{
    bool any = false;
    uint32_t part;

    while (fl.on && (part = take_spent_part())) {
        g_autofree char *path = tt_logparts_path(fl.dir, part);

        if (tt_rundir_is_ours()) {
            unlink(path);
        }
        any = true;
    }
    return any;
}
