/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * gdb's view of the memory that it watches. gdb stops at a hit of "watch" only if the
 * value differs from the one that it saw at the last hit, and it looks only when a stop
 * reply names the watchpoint. So two things must not happen behind its back:
 *
 * - A step backwards undoes a write. Its stop names the watchpoint whose bytes it
 *   changed.
 * - Somebody else moves the VM while gdb stands ("monitor tt goto", QMP). Before
 *   gdb's next resumption runs, it is answered with a stop for each of its write
 *   watchpoints, one after the other. gdb reads each value: it resumes without a
 *   word if that is the one it knows, and shows the change if it is not. A
 *   single step must move, so its own stop carries the name.
 *
 * gdb takes watchpoints out at each stop and puts them in before it resumes, so
 * they are known by address and length.
 */
#include "qemu/osdep.h"
#include "accel-tt/tt-position.h"
#include "accel-tt/tt-vcpus.h"
#include "travel/tt-travel.h"
#include "tt-gdb-watch-int.h"
#include "tt/hooks.h"
#include "exec/cpu-common.h"
#include "exec/gdbstub.h"
#include "gdbstub/commands.h"
#include "gdbstub/internals.h"

typedef struct Watched {
    vaddr addr, len;
    uint8_t *bytes;             /* at the origin of a step; NULL: not readable */
} Watched;

static struct {
    uint64_t told;              /* where the VM stood at the last stop reply */
    GArray *unsure;             /* of Watched: inserted when it stood elsewhere,
                                   and not named since */
    GArray *origin;             /* of Watched: before a step backwards ... */
    CPUState *stepper;          /* ... of this vCPU, with its page tables */
} belief = { .told = UINT64_MAX };

static bool is_write_watch(const CPUWatchpoint *wp)
{
    return (wp->flags & BP_GDB) && !(wp->flags & BP_MEM_READ);
}

static void clear_watched(gpointer p)
{
    g_free(((Watched *)p)->bytes);
}

static GArray *new_list(void)
{
    GArray *list = g_array_new(false, false, sizeof(Watched));

    g_array_set_clear_func(list, clear_watched);
    return list;
}

static Watched *find(GArray *list, const CPUWatchpoint *wp)
{
    for (guint i = 0; i < list->len; i++) {
        Watched *w = &g_array_index(list, Watched, i);

        if (w->addr == wp->vaddr && w->len == wp->len) {
            return w;
        }
    }
    return NULL;
}

/* ---- the VM was moved by others ---- */

static void forget(GArray *list, const CPUWatchpoint *wp)
{
    Watched *w = find(list, wp);

    g_array_remove_index(list, w - (Watched *)(void *)list->data);
}

/* A watchpoint whose value gdb may not know; from now on it counts as known. */
static CPUWatchpoint *next_to_name(void)
{
    CPUWatchpoint *wp;

    if (!belief.unsure->len) {
        return NULL;
    }
    QTAILQ_FOREACH(wp, &tt_vcpu()->watchpoints, entry) {
        if (is_write_watch(wp) && find(belief.unsure, wp)) {
            forget(belief.unsure, wp);
            return wp;
        }
    }
    return NULL;
}

/* gdb reads the value of a watchpoint before it inserts it. */
static void be_unsure(void)
{
    CPUWatchpoint *wp;

    g_array_set_size(belief.unsure, 0);
    QTAILQ_FOREACH(wp, &tt_vcpu()->watchpoints, entry) {
        if (is_write_watch(wp) && !find(belief.unsure, wp)) {
            Watched w = { wp->vaddr, wp->len };

            g_array_append_val(belief.unsure, w);
        }
    }
}

static void answer(const CPUWatchpoint *wp)
{
    g_autoptr(GString) reply = g_string_new("T05thread:");

    gdb_set_stop_cpu(tt_vcpu());
    gdb_append_thread_id(tt_vcpu(), reply);
    g_string_append_printf(reply, ";watch:%" VADDR_PRIx ";", wp->vaddr);
    gdb_put_packet(reply->str);
    gdbserver_state.allow_stop_reply = false;
}

bool tt_gdb_watch_answers(bool step)
{
    CPUWatchpoint *wp;

    if (belief.told != tt_position()) {
        belief.told = tt_position();
        be_unsure();
    }
    wp = step ? NULL : next_to_name();
    if (wp) {
        answer(wp);
    }
    return wp != NULL;
}

/* ---- steps backwards ---- */

static uint8_t *read_watched(CPUState *cpu, const CPUWatchpoint *wp)
{
    uint8_t *bytes;

    if (wp->len > TT_WATCH_COMPARED) {
        return NULL;
    }
    bytes = g_malloc(wp->len);
    if (cpu_memory_rw_debug(cpu, wp->vaddr, bytes, wp->len, false)) {
        g_free(bytes);
        return NULL;
    }
    return bytes;
}

void tt_gdb_watch_before(CPUState *cpu)
{
    CPUWatchpoint *wp;

    g_array_set_size(belief.origin, 0);
    belief.stepper = cpu;
    QTAILQ_FOREACH(wp, &cpu->watchpoints, entry) {
        if (is_write_watch(wp)) {
            Watched w = { wp->vaddr, wp->len, read_watched(cpu, wp) };

            g_array_append_val(belief.origin, w);
        }
    }
}

static bool has_changed(const CPUWatchpoint *wp)
{
    const Watched *w = find(belief.origin, wp);
    g_autofree uint8_t *now = w ? read_watched(belief.stepper, wp) : NULL;

    return w && (w->bytes && now ? memcmp(w->bytes, now, wp->len) :
                 w->bytes || now) &&
        tt_gdb_filter_passes(tt_vcpu(), wp, BP_MEM_WRITE);
}

static CPUWatchpoint *next_changed(void)
{
    CPUWatchpoint *wp;

    QTAILQ_FOREACH(wp, &tt_vcpu()->watchpoints, entry) {
        if (is_write_watch(wp) && has_changed(wp)) {
            return wp;
        }
    }
    return NULL;
}

const char *tt_gdb_watch_at_stop(bool may_name)
{
    static char text[32];
    CPUWatchpoint *wp = may_name ? next_changed() ?: next_to_name() : NULL;

    belief.told = tt_position();
    g_array_set_size(belief.origin, 0);
    snprintf(text, sizeof(text), wp ? "watch:%" VADDR_PRIx ";" : "",
             wp ? wp->vaddr : 0);
    return text;
}

/* ---- sessions ---- */

void tt_gdb_watch_attached(void)
{
    belief.told = tt_position();
    g_array_set_size(belief.unsure, 0);
    g_array_set_size(belief.origin, 0);
}

void tt_gdb_init_watch(void)
{
    belief.unsure = new_list();
    belief.origin = new_list();
}
