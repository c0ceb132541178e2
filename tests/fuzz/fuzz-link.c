/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzz target of the bytes that a peer sends over a link of a group: any bytes, or
 * right messages that were changed, in pieces. The output keeps its promises, and a
 * link that is broken stays so.
 *
 * The first byte: bit 0: with a key; bit 1: a hello and READY come first; the rest:
 * the size of the pieces.
 */
#include "net-tt/tt-link.h"
#include "net-tt/tt-shape.h"

#include <glib.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CHECK(x) do { if (!(x)) { abort(); } } while (0)

static const uint8_t key[] = "sixteen and more bytes";

static TtLink *end_of(bool is_keyed, uint8_t nonce)
{
    TtLinkOptions o = { .group = "g", .key = is_keyed ? key : NULL,
                        .key_len = is_keyed ? sizeof(key) : 0 };

    memset(o.nonce, nonce, sizeof(o.nonce));
    return tt_link_new(&o);
}

/* Takes what there is. */
static void drain(TtLink *l, TtHeard *heard, TtPlaces *places)
{
    TtFrame f;
    TtDiag diag;
    TtStatus st;

    while ((st = tt_link_next(l, &f, &diag)) == TT_OK || st == TT_ERR_MISMATCH) {
        if (st == TT_OK && f.is_incident) {
            TtIncident i;

            CHECK(tt_link_is_open(l));
            CHECK(tt_incident_get(&i, &f, NULL) == TT_OK && *i.mark);
            CHECK(!tt_has_control(i.what));
        } else if (st == TT_OK) {
            CHECK(tt_link_is_open(l));
            CHECK(f.len >= TT_FRAME_BYTES_MIN && f.len <= TT_FRAME_BYTES_MAX);
            CHECK(f.hash == tt_frame_hash(f.data, f.len));
            CHECK(f.is_recorded == (f.pos != TT_FRAME_NO_POS));
            tt_heard_is_new(heard, &f);
            CHECK(!tt_heard_is_new(heard, &f));
            tt_places_pass(places, f.data, f.seq % TT_SHAPE_PORTS_MAX);
        } else {
            CHECK(strlen(diag.text));
        }
    }
    if (st != TT_END) {
        CHECK(st < 0 && strlen(diag.text) && !tt_link_is_open(l));
        CHECK(tt_link_next(l, &f, NULL) == st);
    }
}

/* One note, or what one has no room for in two. */
static void keep(const uint8_t *data, size_t size)
{
    uint32_t cut = MIN(size, TT_FRAME_KEPT_MAX);
    uint32_t aux = cut < size ? size - TT_FRAME_NOTE_MAX - 1 - data[TT_FRAME_NOTE_MAX] :
        size / 2;
    g_autofree TtKept *k = g_new0(TtKept, 1);
    g_autofree uint8_t *again = g_malloc(TT_FRAME_KEPT_MAX);
    uint32_t n_rest;

    if (!tt_kept_take(k, TT_FRAME_KEPT, 1, aux, data, cut, NULL)) {
        CHECK(k->n == k->frame.len && k->frame.len == aux);
        CHECK(tt_frame_kept_put(again, &k->frame, k->netdev, &n_rest) == cut && !n_rest);
        CHECK(!memcmp(again, data, cut));
    }
    tt_kept_take(k, TT_FRAME_REST, 1, aux, data + cut, size - cut, NULL);
    CHECK(k->n <= k->frame.len && k->frame.len <= TT_FRAME_BYTES_MAX);
}

static void note(const uint8_t *data, size_t size)
{
    uint8_t again[TT_FRAME_NOTE_MAX], more[TT_INCIDENT_NOTE_MAX];
    unsigned what = size & 1 ? TT_FRAME_SENT : TT_FRAME_DELIVERED;
    TtIncident i;
    TtFrame f;

    f = (TtFrame) { .len = 60 };
    if (!tt_frame_in_get(&f, data, size, NULL)) {
        CHECK(tt_frame_in_put(again, &f) <= size);      /* longer forms of a number */
    }
    f = (TtFrame) { .len = 60 };
    if (!tt_frame_out_get(&f, data, size, NULL)) {
        CHECK(tt_frame_out_put(again, &f) <= size);
    }
    if (!tt_incident_note_get(&i, 1, data, size, NULL)) {
        CHECK(*i.mark && !tt_has_control(i.what));
        CHECK(tt_incident_note_put(more, &i) == size);
    }

    keep(data, size);
    if (size > 8 && !tt_frame_note_get(&f, what, 1, 60, data, size, NULL)) {
        CHECK(tt_frame_note_put(again, what, &f) == size);
        CHECK(!memcmp(again, data, size));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    g_autofree TtHeard *heard = g_new0(TtHeard, 1);
    g_autofree TtPlaces *places = g_new0(TtPlaces, 1);
    TtLink *l, *peer;
    size_t step;

    if (!size) {
        return 0;
    }
    note(data, size);
    l = end_of(data[0] & 1, 1);
    peer = end_of(data[0] & 1, 2);
    if (data[0] & 2) {
        const uint8_t *said = tt_link_out(l, &step);

        tt_link_put(peer, said, step);
        drain(peer, heard, places);
        said = tt_link_out(peer, &step);
        tt_link_put(l, said, step);
        drain(l, heard, places);
        CHECK(tt_link_is_open(l));
    }
    step = data[0] / 4 * 37 + 1;
    for (size_t at = 1; at < size; at += step) {
        g_autofree uint8_t *exact = g_memdup2(data + at, MIN(step, size - at));

        tt_link_put(l, exact, MIN(step, size - at));
        drain(l, heard, places);
    }
    tt_link_out(l, &step);
    CHECK(step <= TT_HELLO_BYTES + TT_MESSAGE_HEAD_BYTES + TT_MAC_BYTES);
    tt_link_free(l);
    tt_link_free(peer);
    return 0;
}
