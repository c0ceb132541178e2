/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Encoder: events into the two buffers of an open segment.
 *
 * This is the recorder's hot path (the vCPU thread, up to 1.5 million events a
 * second): one pass, no allocation, no call but memcpy of longer data. All
 * checks here are of our own callers, so they are asserts.
 *
 * I1: position so far <= position of the next event <= TT_LOG_POS_MAX.
 * I2: an event that "fits" never overruns a buffer: it takes at most
 *     TT_F_EV_BYTES_MAX event bytes and its data.
 * I3: events grow from the front of the buffer (ev), the low bytes of TSC
 *     events from its back (low); ev <= low. They are joined at the end.
 */
#include "tt-log-format.h"

#include <assert.h>
#include <glib.h>

static_assert(TT_SEG_EVENTS_MAX > TT_F_EV_BYTES_MAX &&
              TT_SEG_PAYLOAD_MAX >= TT_LOG_DATA_MAX,
              "any event fits an empty segment");

struct TtLogEncoder {
    TtSegBuf *sb;               /* the open segment or NULL */
    uint8_t *ev;                /* next event byte */
    uint8_t *low;               /* the low byte that was put last */
    uint64_t pos;               /* position so far */
    uint64_t n_segments;
    uint64_t n_events;          /* before the open segment */
    uint8_t told[TT_F_TOLD_MAX];        /* what R13 says of a frame, here */
    uint32_t told_len;          /* 0: nothing */
    int64_t spare;              /* event bytes kept free: see TT_F_NAMED_GROWTH */
    TtLogState state[TT_EV_KIND_MAX + 1];
    TtLogRamEnds ram_ends;
};

TtSegBuf *tt_segbuf_new(void)
{
    TtSegBuf *sb = g_new0(TtSegBuf, 1);

    sb->ev = g_try_malloc(TT_SEG_EVENTS_MAX);
    sb->pl = g_try_malloc(TT_SEG_PAYLOAD_MAX);
    if (!sb->ev || !sb->pl) {
        tt_segbuf_free(sb);
        return NULL;
    }
    return sb;
}

void tt_segbuf_free(TtSegBuf *sb)
{
    if (sb) {
        g_free(sb->ev);
        g_free(sb->pl);
        g_free(sb);
    }
}

TtLogEncoder *tt_log_encoder_new(void)
{
    return g_new0(TtLogEncoder, 1);
}

TtLogEncoder *tt_log_encoder_new_at(const TtLogPlace *at)
{
    TtLogEncoder *e = tt_log_encoder_new();

    assert(at->pos <= TT_LOG_POS_MAX);
    e->n_segments = at->segment;
    e->n_events = at->event;
    e->pos = at->pos;
    return e;
}

void tt_log_encoder_free(TtLogEncoder *e)
{
    g_free(e);
}

void tt_log_encoder_begin(TtLogEncoder *e, TtSegBuf *sb, uint64_t pos,
                          uint64_t host_ns)
{
    assert(!e->sb);
    assert(pos >= e->pos && pos <= TT_LOG_POS_MAX);     /* I1 */

    uint8_t *ev = sb->ev, *pl = sb->pl;
    *sb = (TtSegBuf) {
        .seq = e->n_segments,
        .first_event = e->n_events,
        .first_pos = pos,
        .end_pos = pos,
        .host_ns = host_ns,
        .ev = ev,
        .pl = pl,
    };
    e->sb = sb;
    e->ev = ev;
    e->low = ev + TT_SEG_EVENTS_MAX;
    e->pos = pos;
    memset(e->state, 0, sizeof(e->state));              /* R4 */
    memset(&e->ram_ends, 0, sizeof(e->ram_ends));
    e->told_len = 0;
    e->spare = 0;
}

bool tt_log_encoder_fits(const TtLogEncoder *e, const TtEvent *ev)
{
    uint32_t bytes = tt_event_bytes(ev), len = ev->len > bytes ? ev->len : bytes;

    return e->low - e->ev >= TT_F_EV_BYTES_MAX + e->spare &&
           (uint64_t)len + e->sb->named_bytes + e->sb->pl_len <= TT_SEG_PAYLOAD_MAX;
}

uint32_t tt_log_encoder_bytes(const TtLogEncoder *e)
{
    return TT_SEG_EVENTS_MAX - (e->low - e->ev);
}

/* 0xff: no access has this size. */
static inline unsigned size_code(unsigned size)
{
    static const uint8_t code[9] = {
        0, 1, 2, 0xff, 3, 0xff, 0xff, 0xff, 4
    };

    assert(size < sizeof(code) && code[size] != 0xff);
    return code[size];
}

static inline uint8_t *put_split(TtLogEncoder *e, uint8_t *p, uint64_t delta)
{
    *--e->low = delta;
    return tt_put_varint(p, tt_split_high(delta));
}

static inline uint8_t *put_val(TtLogEncoder *e, uint8_t *p, const TtLogState *s,
                               const TtEvent *ev)
{
    if (ev->kind == TT_EV_TSC) {
        return put_split(e, p, ev->val - s->base);
    }
    return tt_put_varint(p, tt_log_val_is_signed(ev->kind)
                         ? tt_zigzag(ev->val - s->base) : ev->val);
}

/* Shape and fields of an event that is not short. */
static inline uint8_t *put_fields(TtLogEncoder *e, uint8_t *p,
                                  const TtLogState *s, const TtEvent *ev,
                                  unsigned code)
{
    uint8_t *shape = p++;
    unsigned bits = code;

    if (ev->cpu) {
        bits |= TT_F_SHAPE_CPU;
        *p++ = ev->cpu;
    }
    if (ev->aux) {
        bits |= TT_F_SHAPE_AUX;
        p = tt_put_varint(p, ev->aux);
    }
    if (ev->addr != s->addr) {
        bits |= TT_F_SHAPE_ADDR;
        p = tt_put_varint(p, tt_zigzag(ev->addr - s->addr));
    }
    if (ev->val != s->base) {
        bits |= TT_F_SHAPE_VAL;
        p = put_val(e, p, s, ev);
    }
    if (ev->len) {
        bits |= TT_F_SHAPE_LEN;
        p = tt_put_varint(p, ev->len);
    }
    *shape = bits;
    return p;
}

/* Data goes in line when short, else to the payload. */
static inline uint8_t *put_data(TtSegBuf *sb, uint8_t *p, const TtEvent *ev)
{
    assert(ev->len <= TT_LOG_DATA_MAX);
    if (ev->len <= TT_LOG_INLINE_MAX) {
        memcpy(p, ev->data, ev->len);
        return p + ev->len;
    }
    assert(ev->len <= TT_SEG_PAYLOAD_MAX - sb->pl_len);     /* I2 */
    memcpy(sb->pl + sb->pl_len, ev->data, ev->len);
    sb->pl_len += ev->len;
    sb->kind_payload[ev->kind] += ev->len;
    return p;
}

static inline void put_event(TtLogEncoder *e, const TtEvent *ev)
{
    TtSegBuf *sb = e->sb;
    TtLogState *s = &e->state[ev->kind & TT_F_EV_KIND];
    unsigned code = size_code(ev->size);
    uint8_t *start = e->ev, *low = e->low, *p = start + 1;
    bool same = ev->addr == s->addr && ev->aux == s->aux &&
                code == s->size_code && ev->cpu == s->cpu && !ev->len;
    bool is_tsc = ev->kind == TT_EV_TSC;

    assert(sb && low - start >= TT_F_EV_BYTES_MAX);         /* I2, I3 */
    assert(ev->kind <= TT_EV_KIND_MAX && tt_log_kind_is_readable(ev->kind));
    assert(ev->pos >= e->pos && ev->pos < TT_LOG_POS_MAX);  /* I1 */

    *start = ev->kind | (ev->nested ? TT_F_EV_NESTED : 0);
    p = tt_put_varint(p, ev->pos - e->pos);
    if (same && (is_tsc || ev->val == s->base)) {
        *start |= TT_F_EV_SHORT;
        if (is_tsc) {
            p = put_split(e, p, ev->val - s->base);
        }
    } else {
        p = put_fields(e, p, s, ev, code);
        if (ev->len) {
            p = put_data(sb, p, ev);
        }
    }

    s->addr = ev->addr;
    s->aux = ev->aux;
    s->size_code = code;
    s->cpu = ev->cpu;
    s->base = tt_log_next_val(ev);
    if (tt_event_is_named(ev->kind)) {
        sb->named_bytes += ev->aux;
        e->spare += TT_F_NAMED_GROWTH;
    }
    e->pos = ev->pos + tt_event_step(ev);
    e->ev = p;
    sb->n_events++;
    sb->kind_count[ev->kind]++;
    sb->kind_bytes[ev->kind] += (p - start) + (low - e->low);
}

/* Leaves out data that the reader can tell from the frame-in event before it. */
static bool is_told(const TtLogEncoder *e, const TtEvent *ev)
{
    return ev->len && ev->len == e->told_len && !memcmp(ev->data, e->told, ev->len);
}

void tt_log_encoder_put(TtLogEncoder *e, const TtEvent *ev)
{
    TtLogState *ram = &e->state[TT_EV_RAM], *named_state = &e->state[TT_EV_PAYLOAD];

    if (ev->kind == TT_EV_PAYLOAD) {
        TtEvent named = *ev;

        assert(!ev->size);
        if (is_told(e, ev)) {
            named.size = TT_F_TOLD_SIZE;
            named.len = 0;
            named_state->addr = ram->addr;
            named_state->base = e->ram_ends.last;
        }
        put_event(e, &named);
        if (named.size) {
            ram->addr = named_state->addr;
            e->ram_ends.last = named_state->base;
        }
        return;
    }
    if (ev->kind == TT_EV_RAM) {
        uint64_t *end = tt_log_ram_end(&e->ram_ends, ev->len);

        ram->base = *end;
        put_event(e, ev);
        *end = e->ram_ends.last = ram->base;
        return;
    }
    put_event(e, ev);
    if (ev->kind == TT_EV_FRAME_IN) {
        e->told_len = ev->len < TT_F_TOLD_BYTES ? 0 : tt_log_told(e->told, ev->data, ev->val);
    }
}

TtSegBuf *tt_log_encoder_end(TtLogEncoder *e, bool last)
{
    TtSegBuf *sb = e->sb;

    assert(sb);
    size_t n_low = sb->ev + TT_SEG_EVENTS_MAX - e->low;
    assert(e->ev <= e->low);                                /* I3 */
    memmove(e->ev, e->low, n_low);
    sb->ev_len = e->ev - sb->ev + n_low;
    sb->end_pos = e->pos;
    sb->last = last;
    assert(sb->ev_len <= TT_SEG_EVENTS_MAX);
    e->n_events += sb->n_events;
    e->n_segments++;
    e->sb = NULL;
    e->ev = NULL;
    return sb;
}
