/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Decoder: the event bytes of one segment into an array.
 *
 * Every byte here may be hostile: nothing is read beyond the two lengths, and
 * nothing is asserted that a file could make false.
 */
#include "tt-log-decoder.h"
#include "tt-log-format.h"

#include <glib.h>
#include <inttypes.h>

typedef struct Decoder {
    const uint8_t *start, *p;           /* event bytes, from the front */
    const uint8_t *end;                 /* low bytes, from the back */
    const uint8_t *pl, *pl_end;         /* payload not yet used */
    uint64_t pos;                       /* position so far */
    const char *wrong;                  /* NULL, or what is wrong */
    TtStatus status;                    /* with @wrong */
    const TtEvent *in;                  /* the last of kind frame-in; NULL: none */
    uint32_t n_told;                    /* events whose data R13 tells */
    TtLogState state[TT_EV_KIND_MAX + 1];
    TtLogRamEnds ram_ends;
    bool is_by_len;                     /* R14 */
} Decoder;

static bool wrong(Decoder *d, TtStatus status, const char *what)
{
    d->status = status;
    d->wrong = what;
    return false;
}

static bool get_long_varint(Decoder *d, uint64_t *v)
{
    uint64_t sum = 0;

    for (unsigned shift = 0; shift < 64; shift += 7) {
        if (d->p >= d->end) {
            return wrong(d, TT_ERR_FORMAT, "it is cut short");
        }
        uint64_t b = *d->p++;
        if (shift == 63 && b > 1) {
            break;
        }
        sum |= (b & 0x7f) << shift;
        if (b < 0x80) {
            *v = sum;
            return true;
        }
    }
    return wrong(d, TT_ERR_FORMAT, "a number is above 2^64 - 1");
}

static inline bool get_varint(Decoder *d, uint64_t *v)
{
    if (d->p < d->end && *d->p < 0x80) {
        *v = *d->p++;
        return true;
    }
    return get_long_varint(d, v);
}

static inline bool get_signed(Decoder *d, uint64_t base, uint64_t *v)
{
    uint64_t z;

    if (!get_varint(d, &z)) {
        return false;
    }
    *v = base + tt_unzigzag(z);
    return true;
}

static inline bool get_bounded(Decoder *d, uint64_t max, uint32_t *v)
{
    uint64_t wide;

    if (!get_varint(d, &wide)) {
        return false;
    }
    if (wide > max) {
        return wrong(d, TT_ERR_LIMIT, "a number is above its limit");
    }
    *v = wide;
    return true;
}

static inline bool get_split(Decoder *d, uint64_t base, uint64_t *v)
{
    uint64_t high;

    if (!get_varint(d, &high)) {
        return false;
    }
    if (d->p >= d->end) {
        return wrong(d, TT_ERR_FORMAT, "it is cut short");
    }
    *v = base + tt_split_join(high, *--d->end);
    return true;
}

static bool get_val(Decoder *d, const TtLogState *s, TtEvent *ev)
{
    switch (ev->kind) {
    case TT_EV_TSC:
        return get_split(d, s->base, &ev->val);
    case TT_EV_RAM:
    case TT_EV_DISK:
    case TT_EV_PAYLOAD:
    case TT_EV_FRAME_OUT:
    case TT_EV_FRAME_IN:
        return get_signed(d, s->base, &ev->val);
    default:
        return get_varint(d, &ev->val);
    }
}

static bool get_data(Decoder *d, TtEvent *ev)
{
    if (ev->len == 0) {
        return wrong(d, TT_ERR_FORMAT, "its data is announced but empty");
    }
    if (ev->len <= TT_LOG_INLINE_MAX) {
        if (ev->len > d->end - d->p) {
            return wrong(d, TT_ERR_FORMAT, "its data is cut short");
        }
        ev->data = d->p;
        d->p += ev->len;
    } else {
        if (ev->len > d->pl_end - d->pl) {
            return wrong(d, TT_ERR_FORMAT, "the payload is too short for it");
        }
        ev->data = d->pl;
        d->pl += ev->len;
    }
    return true;
}

/* The size of @ev is known: where its addr and val begin. */
static void begin_values(Decoder *d, TtLogState *s, TtEvent *ev)
{
    if (ev->kind == TT_EV_PAYLOAD && ev->size) {            /* R13 */
        s->addr = d->state[TT_EV_RAM].addr;
        s->base = d->ram_ends.last;
    } else if (ev->kind == TT_EV_RAM && d->is_by_len) {
        s->base = 0;                    /* its length is not known yet: see get_event */
    }
    ev->addr = s->addr;
    ev->val = s->base;
}

/* Shape and fields; @ev holds its kind. */
static bool get_fields(Decoder *d, TtLogState *s, TtEvent *ev, uint8_t *size_code)
{
    static const uint8_t size[8] = { 0, 1, 2, 4, 8 };

    if (d->p >= d->end) {
        return wrong(d, TT_ERR_FORMAT, "it is cut short");
    }
    unsigned shape = *d->p++;
    *size_code = shape & TT_F_SHAPE_SIZE;
    if (*size_code > 4) {
        return wrong(d, TT_ERR_FORMAT, "it has an impossible access size");
    }
    ev->size = size[*size_code];
    if (ev->kind == TT_EV_PAYLOAD && ev->size && ev->size != TT_F_TOLD_SIZE) {     /* R9 */
        return wrong(d, TT_ERR_VERSION, "its kind is not known to this version; a newer "
                     "one may be needed");
    }
    begin_values(d, s, ev);
    if (shape & TT_F_SHAPE_CPU) {
        if (d->p >= d->end) {
            return wrong(d, TT_ERR_FORMAT, "it is cut short");
        }
        ev->cpu = *d->p++;
    }
    if ((shape & TT_F_SHAPE_AUX) && !get_bounded(d, UINT32_MAX, &ev->aux)) {
        return false;
    }
    if ((shape & TT_F_SHAPE_ADDR) && !get_signed(d, s->addr, &ev->addr)) {
        return false;
    }
    if ((shape & TT_F_SHAPE_VAL) && !get_val(d, s, ev)) {
        return false;
    }
    if (shape & TT_F_SHAPE_LEN) {
        return get_bounded(d, TT_LOG_DATA_MAX, &ev->len) && get_data(d, ev);
    }
    return true;
}

static bool get_short(Decoder *d, TtLogState *s, TtEvent *ev)
{
    static const uint8_t size[8] = { 0, 1, 2, 4, 8 };

    ev->size = size[s->size_code];
    ev->cpu = s->cpu;
    ev->aux = s->aux;
    begin_values(d, s, ev);
    return ev->kind != TT_EV_TSC || get_split(d, s->base, &ev->val);
}

static bool get_position(Decoder *d, TtEvent *ev)
{
    uint64_t delta;

    if (!get_varint(d, &delta)) {
        return false;
    }
    if (delta >= TT_LOG_POS_MAX - d->pos) {
        return wrong(d, TT_ERR_LIMIT, "its position is above the limit");
    }
    ev->pos = d->pos + delta;
    d->pos = ev->pos + tt_event_step(ev);
    return true;
}

/* R13: which frame-in event has its data; fill_told makes it. */
static bool get_told(Decoder *d, TtEvent *ev)
{
    if (ev->len || !d->in || d->in->len < TT_F_TOLD_BYTES) {
        return wrong(d, TT_ERR_FORMAT, "nothing tells which frame it means");
    }
    ev->data = (const uint8_t *)d->in;
    d->n_told++;
    d->state[TT_EV_RAM].addr = ev->addr;
    d->state[TT_EV_RAM].base = d->ram_ends.last = ev->val + ev->aux;
    return true;
}

static bool get_event(Decoder *d, TtEvent *ev)
{
    if (d->p >= d->end) {
        return wrong(d, TT_ERR_FORMAT, "it is missing");
    }
    unsigned head = *d->p++, kind = head & TT_F_EV_KIND;
    if (!tt_log_kind_is_readable(kind)) {                   /* R9 */
        return wrong(d, TT_ERR_VERSION, "its kind is not known to this "
                     "version; a newer one may be needed");
    }

    TtLogState *s = &d->state[kind];
    uint8_t code = s->size_code;
    *ev = (TtEvent) { .kind = kind, .nested = head & TT_F_EV_NESTED };
    if (!get_position(d, ev)) {
        return false;
    }
    if (!(head & TT_F_EV_SHORT ? get_short(d, s, ev)
                               : get_fields(d, s, ev, &code))) {
        return false;
    }
    if (kind == TT_EV_RAM && d->is_by_len) {
        ev->val += *tt_log_ram_end(&d->ram_ends, ev->len);
    }
    s->addr = ev->addr;
    s->aux = ev->aux;
    s->cpu = ev->cpu;
    s->size_code = code;
    s->base = tt_log_next_val(ev);
    if (ev->kind == TT_EV_PAYLOAD && ev->size) {
        return get_told(d, ev);
    }
    if (kind == TT_EV_RAM) {
        *tt_log_ram_end(&d->ram_ends, ev->len) = d->ram_ends.last = s->base;
    } else if (kind == TT_EV_FRAME_IN) {
        d->in = ev;
    }
    return true;
}

static TtStatus fail(const Decoder *d, const TtSegInfo *info, uint32_t i,
                     TtDiag *diag)
{
    tt_fail(diag, d->status, "event %" PRIu64 " of the log (byte %td of the "
            "decoded segment %" PRIu64 ") cannot be read: %s",
            info->first_event + i, d->p - d->start, info->seq, d->wrong);
    if (diag) {
        diag->offset = info->offset_bytes;
        diag->position = d->pos;
    }
    return d->status;
}

/* A replay finds no difference to events that have their data in the log. */
static TtStatus fill_told(const Decoder *d, TtEvent *events, uint32_t n_events,
                          uint8_t **told, TtDiag *diag)
{
    uint8_t *p = g_try_malloc_n(d->n_told, TT_F_TOLD_MAX);

    *told = p;
    if (!p) {
        return tt_fail(diag, TT_ERR_NOMEM, "not enough memory to read the log");
    }
    for (uint32_t i = 0; i < n_events; i++) {
        TtEvent *ev = &events[i];

        if (ev->kind == TT_EV_PAYLOAD && ev->size) {
            const TtEvent *in = (const TtEvent *)ev->data;

            ev->size = 0;
            ev->data = p;
            ev->len = tt_log_told(p, in->data, in->val);
            p += ev->len;
        }
    }
    return TT_OK;
}

TtStatus tt_log_decode(const TtSegInfo *info, uint32_t flags, const uint8_t *ev,
                       const uint8_t *pl, TtEvent *events, uint8_t **told, TtDiag *diag)
{
    Decoder d = {
        .start = ev, .p = ev, .end = ev + info->ev_raw,
        .pl = pl, .pl_end = pl + info->pl_raw,
        .pos = info->first_pos,
        .is_by_len = flags & TT_F_SEG_RAM_BY_LEN,
    };
    uint32_t i;

    for (i = 0; i < info->n_events; i++) {
        if (!get_event(&d, &events[i])) {
            return fail(&d, info, i, diag);
        }
    }
    if (d.p != d.end || d.pl != d.pl_end || d.pos != info->end_pos) { /* R5 */
        wrong(&d, TT_ERR_FORMAT, "the segment's header and contents disagree");
        return fail(&d, info, i, diag);
    }
    return d.n_told ? fill_told(&d, events, info->n_events, told, diag) : TT_OK;
}
