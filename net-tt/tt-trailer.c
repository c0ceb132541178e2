/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Trailers of frames: the head of a message of a link, a check of it, a magic. A frame that
 * does not end in both magics has no trailer.
 */
#include "net-tt/tt-trailer.h"
#include "io/tt-bytes.h"

#include <assert.h>
#include <glib.h>
#include <inttypes.h>

#define MAGIC       "TTVMTR1\n"
#define MAGIC_BYTES 8
#define CHECK_AT    TT_MESSAGE_HEAD_BYTES
#define MAGIC_AT    (CHECK_AT + TT_MAC_BYTES)

static_assert(MAGIC_AT + MAGIC_BYTES == TT_TRAILER_BYTES, "trailer layout");

void tt_trailer_group_init(TtTrailerGroup *g, const char *group, const uint8_t *key,
                           size_t key_len)
{
    gsize len = TT_MAC_BYTES;
    GHmac *mac;

    assert(tt_group_name_is_fit(group) && !key == !key_len);
    *g = (TtTrailerGroup) { .name = tt_frame_hash((const uint8_t *)group, strlen(group)),
                            .has_key = key };
    if (key) {
        mac = g_hmac_new(G_CHECKSUM_SHA256, key, key_len);
        g_hmac_update(mac, (const guchar *)MAGIC, MAGIC_BYTES);
        g_hmac_update(mac, (const guchar *)group, strlen(group));
        g_hmac_get_digest(mac, g->key, &len);
        g_hmac_unref(mac);
    }
}

static void check_of(uint8_t out[TT_MAC_BYTES], const TtTrailerGroup *g,
                     const uint8_t *head, const uint8_t *data, uint32_t len)
{
    if (g->has_key) {
        tt_frame_mac(out, g->key, head, data, len);
    } else {
        memset(out, 0, TT_MAC_BYTES);
        tt_put_le64(out, tt_frame_hash(head, TT_MESSAGE_HEAD_BYTES));
    }
}

static void put(uint8_t *out, const TtTrailerGroup *g, TtMessage *m)
{
    m->number = g->name;
    tt_message_put(out, m);
    check_of(out + CHECK_AT, g, out, m->frame.data, m->frame.len);
    memcpy(out + MAGIC_AT, MAGIC, MAGIC_BYTES);
}

void tt_trailer_put(uint8_t out[TT_TRAILER_BYTES], const TtTrailerGroup *g,
                    const TtFrame *f)
{
    TtMessage m = { .kind = TT_MESSAGE_FRAME, .frame = *f };

    assert(f->len >= TT_FRAME_BYTES_MIN && f->len <= TT_FRAME_BYTES_MAX);
    put(out, g, &m);
}

void tt_trailer_put_epoch(uint8_t out[TT_TRAILER_BYTES], const TtTrailerGroup *g,
                          uint32_t epoch)
{
    TtMessage m = {
        .kind = TT_MESSAGE_EPOCH, .frame = { .pos = TT_FRAME_NO_POS, .epoch = epoch },
    };

    assert(epoch <= TT_EPOCH_MAX);
    put(out, g, &m);
}

/* Without a key the check ends in zeros; a MAC does not. */
static bool has_mac(const uint8_t *check)
{
    static const uint8_t zeros[TT_MAC_BYTES - 8];

    return memcmp(check + 8, zeros, sizeof(zeros));
}

static TtStatus check_check(const TtTrailerGroup *g, const TtFrame *f, const uint8_t *head,
                            TtDiag *diag)
{
    const uint8_t *check = head + CHECK_AT;
    uint8_t right[TT_MAC_BYTES];

    if (g->has_key != has_mac(check)) {
        return tt_fail(diag, TT_ERR_INVALID, "its sender has %s key and this side has %s: "
                       "give both the same key-file, or neither", g->has_key ? "no" : "a",
                       g->has_key ? "one" : "none");
    }
    check_of(right, g, head, f->data, f->len);
    if (!tt_mac_is_equal(right, check)) {
        return g->has_key ?
            tt_fail(diag, TT_ERR_INVALID, "it is not from a member of the group, or was "
                    "changed on its way: its authentication is wrong") :
            tt_fail(diag, TT_ERR_FORMAT, "its trailer is damaged");
    }
    return TT_OK;
}

TtStatus tt_trailer_get(TtMessage *m, const TtTrailerGroup *g, const uint8_t *bytes,
                        size_t len, TtDiag *diag)
{
    TtFrame *f = &m->frame;
    const uint8_t *head;
    size_t data_len;
    TtStatus st;

    if (len < TT_FRAME_BYTES_MIN + TT_TRAILER_BYTES) {
        return TT_END;
    }
    data_len = len - TT_TRAILER_BYTES;
    head = bytes + data_len;
    if (memcmp(head, "TTMF", 4) || memcmp(head + MAGIC_AT, MAGIC, MAGIC_BYTES)) {
        return TT_END;
    }
    st = tt_message_get(m, head, diag);
    if (st) {
        return st;
    }
    if (m->kind != TT_MESSAGE_EPOCH && (m->kind != TT_MESSAGE_FRAME || f->len != data_len)) {
        return tt_fail(diag, TT_ERR_FORMAT, "its trailer is not that of a frame of %zu "
                       "bytes", data_len);
    }
    if (m->number != g->name) {
        return tt_fail(diag, TT_ERR_INVALID, "it is of another group: give all members the "
                       "same group, or each group a network of its own");
    }
    f->data = f->len ? bytes : NULL;
    st = check_check(g, f, head, diag);
    if (!st && f->len && tt_frame_hash(f->data, f->len) != f->hash) {
        return tt_fail(diag, TT_ERR_MISMATCH, "frame %" PRIu64 " was damaged on its way: its "
                       "hash is wrong", f->seq);
    }
    return st;
}
