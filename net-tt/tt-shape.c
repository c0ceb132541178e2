/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The fate of a frame in a hub: delay, loss and rate from a seed, and which sender is at
 * which port.
 */
#include "net-tt/tt-shape.h"
#include "io/tt-bytes.h"

#include <assert.h>

static_assert(TT_SHAPE_PORTS_MAX <= 256, "a port of a place is a byte");

uint64_t tt_shape_came(TtShape *s, unsigned port)
{
    assert(port < TT_SHAPE_PORTS_MAX);
    return s->count[port]++;
}

static uint64_t chance(const TtShape *s, unsigned port, uint64_t number, unsigned to,
                       unsigned what)
{
    uint8_t bytes[20];

    tt_put_le64(bytes, number);
    tt_put_le32(bytes + 8, port);
    tt_put_le32(bytes + 12, to);
    tt_put_le32(bytes + 16, what);
    return XXH3_64bits_withSeed(bytes, sizeof(bytes), s->o.seed);
}

TtFate tt_shape_fate(TtShape *s, unsigned port, uint64_t number, unsigned to,
                     uint32_t len, uint64_t now_ns, uint64_t *at_ns)
{
    uint64_t at = now_ns;

    assert(port < TT_SHAPE_PORTS_MAX && to < TT_SHAPE_PORTS_MAX);
    if (chance(s, port, number, to, 0) % TT_SHAPE_PPM < s->o.loss_ppm) {
        return TT_FATE_LOST;
    }
    if (s->o.rate_bits) {
        uint64_t cost = len * UINT64_C(8000000000) / s->o.rate_bits;

        at = s->free_ns[to] > at ? s->free_ns[to] : at;
        if (at - now_ns > s->o.queue_ns) {
            return TT_FATE_QUEUE_FULL;
        }
        at += cost;
        s->free_ns[to] = at;
    }
    if (s->o.jitter_ns) {
        at += chance(s, port, number, to, 1) % (s->o.jitter_ns + 1);
    }
    *at_ns = at + s->o.delay_ns;
    return TT_FATE_GOES;
}

void tt_shape_left(TtShape *s, unsigned port)
{
    assert(port < TT_SHAPE_PORTS_MAX);
    s->free_ns[port] = 0;
}

/* ---- who is where ---- */

static unsigned slot_of(const uint8_t *mac)
{
    return XXH3_64bits(mac, 6) % TT_PLACES;
}

unsigned tt_places_pass(TtPlaces *p, const uint8_t *frame, unsigned port)
{
    const uint8_t *to = frame, *from = frame + 6;
    unsigned at = slot_of(from);

    if (!(from[0] & 1)) {
        memcpy(p->place[at].mac, from, 6);
        p->place[at].port = port;
        p->place[at].is_known = true;
    }
    at = slot_of(to);
    if (to[0] & 1 || !p->place[at].is_known || memcmp(p->place[at].mac, to, 6)) {
        return TT_PORT_ALL;
    }
    return p->place[at].port;
}

void tt_places_forget(TtPlaces *p, unsigned port)
{
    for (unsigned i = 0; i < TT_PLACES; i++) {
        p->place[i].is_known &= p->place[i].port != port;
    }
}
