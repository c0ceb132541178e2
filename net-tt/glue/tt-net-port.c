/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Ports: frames of the group to the NICs of this VM, in the order in which they came, and
 * its checkpoints. Owns the epoch of this VM.
 */
#include "qemu/osdep.h"
#include "tt-net-heard-int.h"
#include "tt-net-port-int.h"
#include "net-tt/glue/tt-net-epoch.h"
#include "qemu/main-loop.h"
#include "qemu/timer.h"
#include "session/tt-session.h"
#include "tt/hooks.h"

#define AGAIN_MS 1

static GSList *all_ports;       /* of TtNetPort */
static unsigned ways;           /* TT_WAYS_* */
static struct {
    uint32_t now, heard;        /* heard: that others have made, by an announcement */
    bool (*wanted)(uint32_t epoch);
} epoch;

static TtFrame *copy_of(const TtFrame *f)
{
    TtFrame *copy = g_memdup2(f, sizeof(*f));

    copy->data = g_memdup2(f->data, f->len);
    return copy;
}

static void free_frame(gpointer opaque)
{
    TtFrame *f = opaque;

    if (f) {
        g_free((void *)f->data);
        g_free(f);
    }
}

TtNetPort *tt_net_port_of(const NetClientState *nc)
{
    for (GSList *i = all_ports; i; i = i->next) {
        if (((TtNetPort *)i->data)->nc == nc) {
            return i->data;
        }
    }
    return NULL;
}

static void go_on(TtNetPort *p)
{
    if (p->ops->go_on) {
        p->ops->go_on(p);
    }
}

/* ---- to the NIC ---- */

void tt_net_port_taken(NetClientState *nc, ssize_t len)
{
    TtNetPort *p = tt_net_port_of(nc);

    if (!p || !p->nic_is_full) {
        return;                         /* it came by a port that is gone */
    }
    p->nic_is_full = false;
    tt_net_frames_taken(p->queued);
    if (len <= 0 && !runstate_is_running() && p->queued) {
        /* The VM stops, so QEMU empties its queues; the NIC never had it. */
        g_queue_push_head(&p->held, g_steal_pointer(&p->queued));
        p->is_noted = true;
        memcpy(p->noted_in, tt_session.manifest.uuid, TT_RUN_BYTES);
    }
    g_clear_pointer(&p->queued, free_frame);
    if (p->held.length) {
        qemu_bh_schedule(p->release);
    } else {
        go_on(p);
    }
}

/* Frames on their way at a checkpoint of the group are kept with it. */
static void keep(TtNetPort *p, const TtFrame *f)
{
    if (f->epoch < epoch.now) {
        tt_net_note_kept(f, p->nc->name);
    }
}

/* Did the NIC have no room for the first of held, before the VM stopped? Then the log has
 * it, unless another run is recorded since. */
static bool is_noted(const TtNetPort *p)
{
    return p->is_noted && !memcmp(p->noted_in, tt_session.manifest.uuid, TT_RUN_BYTES);
}

/* False: the NIC has no room for more; tt_net_port_taken is called when it has. */
static bool deliver(TtNetPort *p, const TtFrame *f)
{
    bool was_noted = is_noted(p);

    p->is_noted = false;
    /* A cable that the user has pulled out is out at the NIC. A netdev that QEMU has from
     * elsewhere counts as pulled out, too, when its peer has gone: what came before came. */
    if (!p->nc->peer || p->nc->peer->link_down || (p->nc->link_down && !p->is_filter)) {
        return true;
    }
    tt_net_note_delivered(f, was_noted);
    keep(p, f);
    p->nic_is_full = !p->ops->to_nic(p, f->data, f->len);
    if (p->nic_is_full) {
        p->queued = copy_of(f);
        tt_net_frames_moved(f, p->queued);
    }
    tt_net_frames_taken(f);
    return !p->nic_is_full;
}

static void want_epoch(uint32_t e)
{
    if (!epoch.wanted || !epoch.wanted(e)) {
        tt_net_epoch_begins(e, false);
    }
}

/* While its past is shown the VM makes no checkpoint, and has to later. */
static void want_heard(void)
{
    if (epoch.heard > epoch.now && !tt_past) {
        want_epoch(epoch.heard);
    }
}

/*
 * Nothing is delivered while the VM stands still or its past is shown (by the time it is,
 * another run may be recorded), before the recording has begun (it would be in no log), and
 * nothing that was sent after a checkpoint that this VM has not made (that is asked for) or
 * after an incident that is not marked here yet.
 * A NIC that is full stays so when another peer comes.
 */
static bool may_deliver(TtNetPort *p, const TtFrame *f)
{
    if (p->nic_is_full || !runstate_is_running() || tt_past ||
        tt_net_incident_is_pending()) {
        return false;
    }
    if (tt_recording() && !tt_session.has_begun) {
        timer_mod(p->again, qemu_clock_get_ms(QEMU_CLOCK_REALTIME) + AGAIN_MS);
        return false;
    }
    if (f->epoch > epoch.now) {
        want_epoch(f->epoch);
    }
    return f->epoch <= epoch.now;
}

/* The VM runs again, or a checkpoint was made. In the main loop, not among the handlers of
 * its start. */
static void release_held(void *opaque)
{
    TtNetPort *p = opaque;
    TtFrame *f;

    want_heard();
    while ((f = g_queue_peek_head(&p->held)) && may_deliver(p, f)) {
        g_queue_pop_head(&p->held);
        deliver(p, f);
        free_frame(f);
    }
    if (!p->held.length && !p->nic_is_full) {
        go_on(p);
    }
}

static void vm_state_changed(void *opaque, bool running, RunState state)
{
    TtNetPort *p = opaque;

    if (running) {
        qemu_bh_schedule(p->release);
    }
}

bool tt_net_port_frame_came(TtNetPort *p, const TtFrame *f)
{
    if (!tt_heard_is_new(&p->heard, f)) {
        tt_net_say(&p->say, "a frame is dropped: its number %" PRIu64 " was seen before, or "
                   "it is far too late", f->seq);
        return true;
    }
    /* To ask for a checkpoint may end the connection that the bytes are of. */
    if (p->held.length || f->epoch > epoch.now || !may_deliver(p, f)) {
        /* A link stops after this one; but one peer after the other may leave one. */
        if (p->held.length < p->held_max) {
            g_queue_push_tail(&p->held, copy_of(f));
        } else {
            tt_net_say(&p->say, "a frame is dropped: %u others are waiting already",
                       p->held_max);
        }
        qemu_bh_schedule(p->release);
        return false;
    }
    return deliver(p, f);
}

/* ---- checkpoints of the group ---- */

uint32_t tt_net_epoch(void)
{
    return epoch.now;
}

bool tt_net_is_there(void)
{
    return all_ports;
}

void tt_net_epoch_init(bool (*wanted)(uint32_t epoch))
{
    epoch.wanted = wanted;
}

void tt_net_epoch_begins(uint32_t e, bool is_made)
{
    if (e <= epoch.now) {
        return;
    }
    epoch.now = e;
    tt_net_note_epoch(e, is_made);
    for (GSList *i = all_ports; i; i = i->next) {
        TtNetPort *p = i->data;

        /* Noted as delivered, and not in the state of the NIC. A frame may be kept twice. */
        if (p->queued) {
            keep(p, p->queued);
        }
        if (is_noted(p) && p->held.length) {
            keep(p, g_queue_peek_head(&p->held));
        }
        p->ops->tell_epoch(p, e);
        qemu_bh_schedule(p->release);
    }
}

void tt_net_port_epoch_came(uint32_t e)
{
    epoch.heard = MAX(epoch.heard, e);
    want_heard();
}

bool tt_net_deliver_first(const char *netdev, const TtFrame *f)
{
    for (GSList *i = all_ports; i; i = i->next) {
        TtNetPort *p = i->data;

        if (!strcmp(p->nc->name, netdev)) {
            g_queue_push_tail(&p->held, copy_of(f));
            p->held_max++;              /* others wait as well */
            return true;
        }
    }
    return false;
}

/* ---- incidents ---- */

void tt_net_port_tell_incident(const TtIncident *what)
{
    for (GSList *i = all_ports; i; i = i->next) {
        TtNetPort *p = i->data;

        if (p->ops->tell_incident) {
            p->ops->tell_incident(p, what);
        }
    }
}

void tt_net_port_release_all(void)
{
    for (GSList *i = all_ports; i; i = i->next) {
        qemu_bh_schedule(((TtNetPort *)i->data)->release);
    }
}

unsigned tt_net_port_ways(void)
{
    return ways;
}

/* ---- a port comes and goes ---- */

/* @p is one more. */
static void note_way(const TtNetPort *p)
{
    if (!p->ops->tell_incident) {
        ways |= TT_WAYS_FILTER;
        return;
    }
    for (GSList *i = all_ports; i; i = i->next) {
        ways |= ((TtNetPort *)i->data)->ops->tell_incident ? TT_WAYS_SEVERAL : 0;
    }
}

void tt_net_port_init(TtNetPort *p, const TtNetPortOps *ops, NetClientState *nc, char *who,
                      unsigned held_max)
{
    p->ops = ops;
    p->nc = nc;
    p->say.who = who;
    p->held_max = held_max;
    p->release = qemu_bh_new(release_held, p);
    p->again = timer_new_ms(QEMU_CLOCK_REALTIME, release_held, p);
    p->vm_state = qemu_add_vm_change_state_handler(vm_state_changed, p);
    g_queue_init(&p->held);
    note_way(p);
    all_ports = g_slist_append(all_ports, p);
}

void tt_net_port_cleanup(TtNetPort *p)
{
    if (!p->ops) {
        return;
    }
    all_ports = g_slist_remove(all_ports, p);
    qemu_del_vm_change_state_handler(p->vm_state);
    qemu_bh_delete(p->release);
    timer_free(p->again);
    g_queue_clear_full(&p->held, free_frame);
    tt_net_frames_taken(p->queued);
    g_clear_pointer(&p->queued, free_frame);
    g_free(p->say.who);
    p->ops = NULL;
}
