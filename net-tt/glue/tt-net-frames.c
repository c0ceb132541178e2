/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Frame stores while a VM is recorded.
 *
 * A frame that is delivered *arrives* until the NIC has taken it. If a store has it, what
 * the NIC writes to guest RAM meanwhile is compared with its bytes.
 */
#include "qemu/osdep.h"
#include "tt-net-int.h"
#include "net-tt/glue/tt-net-frames.h"
#include "net-tt/tt-framestore.h"
#include "session/tt-session.h"
#include "qemu/error-report.h"

typedef struct Arrival {
    const TtFrame *frame;       /* its owner's */
    uint32_t found;             /* bytes of it that were written */
} Arrival;

static struct {
    char *dir;                  /* NULL: there are no stores */
    bool is_on;                 /* this recording uses them */
    TtFrameWriter *own;         /* of this run; NULL: nothing was sent yet */
    bool has_failed;            /* own did, or could not be made */
    uint8_t run[TT_RUN_BYTES];  /* of own, or has_failed */
    TtFrameStores *others;
    GSList *arriving;           /* of Arrival */
} fr;

void tt_net_frames_init(const char *dir)
{
    fr.dir = g_strdup(dir);
    fr.others = tt_framestores_new(dir);
}

void tt_net_frames_begin(bool on)
{
    fr.is_on = on && fr.dir;
}

/* ---- what is sent ---- */

/* The group goes on: who gets a frame that is in no store logs its bytes. */
static void failed(const TtDiag *why)
{
    warn_report("tt: the frames that this VM sends are not kept in a frame store any more, "
                "so those who get them log their bytes: %s", why->text);
    fr.has_failed = true;
}

static void open_own(void)
{
    g_autofree char *path = NULL;
    TtDiag diag;
    TtIo *io;

    tt_net_frames_end();
    memcpy(fr.run, tt_session.manifest.uuid, TT_RUN_BYTES);
    path = tt_framestores_path(fr.dir, fr.run);
    if (tt_io_posix_create(path, &io, &diag) != TT_OK ||
        tt_framewriter_new(io, fr.run, &fr.own, &diag) != TT_OK) {
        failed(&diag);
        return;
    }
    tt_io_posix_sync_directory_of(path);
}

void tt_net_frames_sent(const TtFrame *f)
{
    TtDiag diag;

    if (!fr.is_on) {
        return;
    }
    if (memcmp(fr.run, f->run, TT_RUN_BYTES)) {
        open_own();
    }
    if (!fr.has_failed && tt_framewriter_put(fr.own, f, &diag) != TT_OK) {
        failed(&diag);
    }
}

void tt_net_frames_end(void)
{
    TtDiag diag;

    if (fr.own && !fr.has_failed && tt_framewriter_sync(fr.own, &diag) != TT_OK) {
        failed(&diag);
    }
    g_clear_pointer(&fr.own, tt_framewriter_free);
    memset(fr.run, 0, TT_RUN_BYTES);
    fr.has_failed = false;
}

/* ---- what arrives ---- */

static GSList *find_arrival(const TtFrame *f)
{
    GSList *i = fr.arriving;

    while (i && ((Arrival *)i->data)->frame != f) {
        i = i->next;
    }
    return i;
}

void tt_net_frames_arrives(const TtFrame *f)
{
    if (fr.is_on && tt_session.manifest.features & TT_FEATURE_FRAMES && f->is_recorded &&
        f->len >= TT_FRAMEPART_MIN && tt_framestores_have(fr.others, f)) {
        Arrival *a = g_new0(Arrival, 1);

        a->frame = f;
        fr.arriving = g_slist_prepend(fr.arriving, a);
    }
}

void tt_net_frames_moved(const TtFrame *f, const TtFrame *to)
{
    GSList *i = find_arrival(f);

    if (i) {
        ((Arrival *)i->data)->frame = to;
    }
}

void tt_net_frames_taken(const TtFrame *f)
{
    GSList *i = find_arrival(f);

    if (i) {
        g_free(i->data);
        fr.arriving = g_slist_delete_link(fr.arriving, i);
    }
}

bool tt_net_frames_find(const uint8_t *written, uint64_t len, uint64_t *at, TtEvent *ev)
{
    static uint8_t data[TT_FRAMEPART_BYTES_MAX];

    for (GSList *i = fr.is_on ? fr.arriving : NULL; i; i = i->next) {
        Arrival *a = i->data;
        const TtFrame *f = a->frame;
        TtFramePart p = { .seq = f->seq, .hash = f->hash, .at = a->found };
        uint32_t n = tt_framepart_match(written, len, f->data, f->len, a->found, at);

        if (n) {
            n = MIN(n, TT_LOG_DATA_MAX);
            memcpy(p.run, f->run, TT_RUN_BYTES);
            *ev = (TtEvent) { .kind = TT_EV_PAYLOAD, .aux = n, .data = data };
            ev->len = tt_framepart_put(data, &p);
            a->found += n;
            return true;
        }
    }
    return false;
}
