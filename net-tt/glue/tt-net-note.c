/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The sender of a frame: the run that is recorded, its position, a sequence. The log
 * notes the frames that were sent and delivered, for `tt group`; a replay passes over
 * these notes.
 */
#include "qemu/osdep.h"
#include "tt-net-int.h"
#include "tt-net-port-int.h"
#include "accel-tt/tt-position.h"
#include "net-tt/glue/tt-net-epoch.h"
#include "log/tt-log.h"
#include "session/tt-ops.h"
#include "session/tt-session.h"
#include "tt/hooks.h"
#include "qapi/error.h"
#include "qemu/error-report.h"
#include "qemu/uuid.h"

G_STATIC_ASSERT(TT_FRAME_KEPT_MAX <= TT_LOG_DATA_MAX);
G_STATIC_ASSERT(TT_FRAME_OUT_MAX <= TT_FRAME_IN_MAX);

static uint64_t next_seq;       /* of this process, over all its runs */
static QemuUUID live_id;        /* of this process where it is not recorded */

static bool is_recorded(void)
{
    return tt_recording() && tt_session.live;
}

static void note(bool is_in, const TtFrame *f)
{
    uint8_t data[TT_FRAME_IN_MAX];
    TtEvent ev = {
        .kind = is_in ? TT_EV_FRAME_IN : TT_EV_FRAME_OUT, .addr = is_in ? f->pos : 0,
        .val = f->seq, .aux = f->len, .data = data,
    };

    ev.len = is_in ? tt_frame_in_put(data, f) : tt_frame_out_put(data, f);
    tt_log_event(&ev);
}

void tt_net_note_sent(TtFrame *f)
{
    f->is_recorded = is_recorded();
    f->pos = f->is_recorded ? tt_position() : TT_FRAME_NO_POS;
    f->seq = next_seq++;
    f->epoch = tt_net_epoch();
    f->hash = tt_frame_hash(f->data, f->len);
    if (f->is_recorded) {
        memcpy(f->run, tt_session.manifest.uuid, TT_RUN_BYTES);
        note(false, f);
        tt_net_frames_sent(f);
        return;
    }
    if (qemu_uuid_is_null(&live_id)) {
        qemu_uuid_generate(&live_id);
    }
    memcpy(f->run, live_id.data, TT_RUN_BYTES);
}

void tt_net_note_delivered(const TtFrame *f, bool is_noted)
{
    if (is_recorded()) {
        if (!is_noted) {
            note(true, f);
        }
        tt_net_frames_arrives(f);
    }
}

void tt_net_note_kept(const TtFrame *f, const char *netdev)
{
    g_autofree uint8_t *data = NULL;
    TtEvent ev = { .kind = TT_EV_FRAME, .addr = TT_FRAME_KEPT, .val = f->seq,
                   .aux = f->len };
    uint32_t n_rest;

    if (!is_recorded()) {
        return;
    }
    data = g_malloc(TT_FRAME_KEPT_MAX);
    ev.len = tt_frame_kept_put(data, f, netdev, &n_rest);
    ev.data = data;
    tt_log_event(&ev);
    if (n_rest) {
        ev.addr = TT_FRAME_REST;
        ev.len = n_rest;
        ev.data = f->data + f->len - n_rest;
        tt_log_event(&ev);
    }
}

/* Before the recording has begun it would be in no log; the past is not written to. */
void tt_net_note_bare(uint32_t len, bool is_of_member)
{
    TtEvent ev = { .kind = TT_EV_FRAME, .addr = TT_FRAME_BARE, .val = is_of_member,
                   .aux = len };

    if (is_recorded() && tt_session.has_begun && !tt_past) {
        tt_log_event(&ev);
    }
}

void tt_net_note_gone(const TtNetPort *p)
{
    g_autofree char *text = g_strdup_printf("%s is taken away: there this VM is no member of "
                                            "the group any more", p->say.who);
    TtEvent ev = { .kind = TT_EV_NOTE, .data = (const uint8_t *)text, .len = strlen(text) };

    if (!is_recorded()) {
        return;
    }
    warn_report("%s", text);
    if (tt_session.has_begun && !tt_past) {
        tt_log_event(&ev);
    }
}

void tt_net_note_epoch(uint32_t epoch, bool is_made)
{
    TtEvent ev = { .kind = TT_EV_FRAME, .addr = TT_FRAME_EPOCH, .val = epoch,
                   .aux = is_made };

    if (is_recorded()) {
        tt_log_event(&ev);
    }
}

void tt_net_note_incident(const TtIncident *i)
{
    uint8_t data[TT_INCIDENT_NOTE_MAX];
    TtEvent ev = { .kind = TT_EV_FRAME, .addr = TT_FRAME_INCIDENT, .val = i->number,
                   .aux = tt_net_port_ways(), .data = data };

    if (is_recorded()) {
        ev.len = tt_incident_note_put(data, i);
        tt_log_event(&ev);
    }
}

bool tt_net_is_own(const TtFrame *f)
{
    return (!qemu_uuid_is_null(&live_id) &&
            !memcmp(f->run, live_id.data, TT_RUN_BYTES)) ||
           (tt_on() && !memcmp(f->run, tt_session.manifest.uuid, TT_RUN_BYTES));
}

bool tt_net_group_is_fit(const char *group, Error **errp)
{
    if (!tt_group_name_is_fit(group)) {
        error_setg(errp, "the name of a group must have 1 to %d letters, digits, '.', "
                   "'_' and '-'", TT_GROUP_NAME_MAX);
        return false;
    }
    return true;
}
