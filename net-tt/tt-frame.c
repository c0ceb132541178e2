/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Frames between VMs as bytes: hello, messages, their authentication, notes in logs.
 */
#include "net-tt/tt-frame.h"
#include "io/tt-bytes.h"

#include <assert.h>
#include <glib.h>
#include <inttypes.h>

#define HELLO_MAGIC     "TTVMNET\n"
#define HELLO_VERSION   2       /* 1 had no incidents */
#define MESSAGE_MAGIC   0x464d5454u     /* "TTMF" */

enum { HELLO_AUTHENTICATED = 1, HELLO_HUB = 2, HELLO_KNOWN = 3 };
enum { FLAG_RECORDED = 1 };

static_assert(TT_HELLO_BYTES == 32 + TT_GROUP_NAME_MAX + 1, "hello layout");

uint64_t tt_frame_hash(const uint8_t *data, uint32_t len)
{
    return XXH3_64bits(data, len);
}

/* ---- hello ---- */

bool tt_group_name_is_fit(const char *name)
{
    size_t len = strlen(name);

    if (!len || len > TT_GROUP_NAME_MAX) {
        return false;
    }
    for (size_t i = 0; i < len; i++) {
        if (!g_ascii_isalnum(name[i]) && !strchr("._-", name[i])) {
            return false;
        }
    }
    return true;
}

void tt_hello_put(uint8_t out[TT_HELLO_BYTES], const TtHello *h)
{
    size_t len = strlen(h->group);

    assert(len <= TT_GROUP_NAME_MAX);
    memset(out, 0, TT_HELLO_BYTES);
    memcpy(out, HELLO_MAGIC, 8);
    tt_put_le32(out + 8, HELLO_VERSION);
    tt_put_le32(out + 12, (h->is_authenticated ? HELLO_AUTHENTICATED : 0) |
                          (h->is_hub ? HELLO_HUB : 0));
    memcpy(out + 16, h->nonce, TT_NONCE_BYTES);
    memcpy(out + 32, h->group, len);
}

TtStatus tt_hello_get(TtHello *h, const uint8_t in[TT_HELLO_BYTES], TtDiag *diag)
{
    uint32_t version = tt_get_le32(in + 8), flags = tt_get_le32(in + 12);

    if (memcmp(in, HELLO_MAGIC, 8)) {
        return tt_fail(diag, TT_ERR_FORMAT, "the peer speaks another protocol: it "
                       "must be a -netdev tt or tt hub");
    }
    if (version == HELLO_VERSION && flags & ~HELLO_KNOWN) {
        return tt_fail(diag, TT_ERR_VERSION, "the peer needs feature %" PRIu32 " of the "
                       "protocol, which this side does not know: use the same TTVM on both",
                       flags & ~HELLO_KNOWN);
    }
    if (version != HELLO_VERSION) {
        return tt_fail(diag, TT_ERR_VERSION, "the peer speaks version %" PRIu32 " of the "
                       "protocol, and this side version %d: use the same TTVM on both",
                       version, HELLO_VERSION);
    }
    h->is_authenticated = flags & HELLO_AUTHENTICATED;
    h->is_hub = flags & HELLO_HUB;
    memcpy(h->nonce, in + 16, TT_NONCE_BYTES);
    memcpy(h->group, in + 32, TT_GROUP_NAME_MAX + 1);
    if (h->group[TT_GROUP_NAME_MAX] || !tt_group_name_is_fit(h->group)) {
        return tt_fail(diag, TT_ERR_FORMAT, "the name of the peer's group is damaged");
    }
    return TT_OK;
}

/* ---- messages ---- */

void tt_message_put(uint8_t out[TT_MESSAGE_HEAD_BYTES], const TtMessage *m)
{
    const TtFrame *f = &m->frame;

    memset(out, 0, TT_MESSAGE_HEAD_BYTES);
    tt_put_le32(out, MESSAGE_MAGIC);
    out[4] = m->kind;
    out[5] = f->is_recorded ? FLAG_RECORDED : 0;
    tt_put_le32(out + 8, f->len);
    tt_put_le32(out + 12, f->epoch);
    memcpy(out + 16, f->run, TT_RUN_BYTES);
    tt_put_le64(out + 32, f->pos);
    tt_put_le64(out + 40, f->seq);
    tt_put_le64(out + 48, f->hash);
    tt_put_le64(out + 56, m->number);
}

static TtStatus check_epoch(const TtFrame *f, TtDiag *diag)
{
    return f->epoch <= TT_EPOCH_MAX ? TT_OK :
        tt_fail(diag, TT_ERR_LIMIT, "a group cannot have checkpoint %" PRIu32 ": %d is "
                "the last possible", f->epoch, TT_EPOCH_MAX);
}

static TtStatus check_incident(const TtFrame *f, TtDiag *diag)
{
    return f->len && f->len <= TT_INCIDENT_TEXT_MAX && f->is_recorded &&
        f->pos <= INT64_MAX && f->seq != UINT64_MAX ? TT_OK :
        tt_fail(diag, TT_ERR_FORMAT, "a message about an incident is damaged");
}

static TtStatus check_frame(const TtFrame *f, TtDiag *diag)
{
    if (f->len > TT_FRAME_BYTES_MAX) {
        return tt_fail(diag, TT_ERR_LIMIT, "a frame of %" PRIu32 " bytes is longer "
                       "than %u", f->len, TT_FRAME_BYTES_MAX);
    }
    if (f->len < TT_FRAME_BYTES_MIN) {
        return tt_fail(diag, TT_ERR_FORMAT, "a frame of %" PRIu32 " bytes is not an "
                       "Ethernet frame", f->len);
    }
    if (f->is_recorded == (f->pos == TT_FRAME_NO_POS) ||
        (f->is_recorded && f->pos > INT64_MAX)) {
        return tt_fail(diag, TT_ERR_FORMAT, "a frame does not say correctly where it was "
                       "sent");
    }
    if (f->seq == UINT64_MAX) {
        return tt_fail(diag, TT_ERR_FORMAT, "a frame has a number that no frame can have");
    }
    return check_epoch(f, diag);
}

TtStatus tt_message_get(TtMessage *m, const uint8_t in[TT_MESSAGE_HEAD_BYTES],
                        TtDiag *diag)
{
    TtFrame *f = &m->frame;

    if (tt_get_le32(in) != MESSAGE_MAGIC || in[5] & ~FLAG_RECORDED || in[6] || in[7]) {
        return tt_fail(diag, TT_ERR_FORMAT, "there is no message where one should begin");
    }
    m->kind = in[4];
    m->number = tt_get_le64(in + 56);
    *f = (TtFrame) {
        .is_recorded = in[5] & FLAG_RECORDED, .len = tt_get_le32(in + 8),
        .epoch = tt_get_le32(in + 12), .pos = tt_get_le64(in + 32),
        .seq = tt_get_le64(in + 40), .hash = tt_get_le64(in + 48),
    };
    memcpy(f->run, in + 16, TT_RUN_BYTES);
    if (m->kind == TT_MESSAGE_FRAME) {
        return check_frame(f, diag);
    }
    if (m->kind == TT_MESSAGE_EPOCH && !f->len) {
        return check_epoch(f, diag);
    }
    if (m->kind == TT_MESSAGE_INCIDENT) {
        f->is_incident = true;
        return check_incident(f, diag);
    }
    if ((m->kind != TT_MESSAGE_READY && m->kind != TT_MESSAGE_REFUSED) || f->len) {
        return tt_fail(diag, TT_ERR_FORMAT, "there is no message of kind %u with "
                       "%" PRIu32 " bytes", m->kind, f->len);
    }
    return TT_OK;
}

/* ---- incidents ---- */

static uint32_t text_put(uint8_t *out, const TtIncident *i)
{
    size_t n = strnlen(i->mark, TT_INCIDENT_MARK_MAX);
    size_t k = strnlen(i->what, TT_INCIDENT_WHAT_MAX);

    out[0] = n;
    memcpy(out + 1, i->mark, n);
    memcpy(out + 1 + n, i->what, k);
    return 1 + n + k;
}

/* A mark's name, and words that drive no terminal. */
static TtStatus text_get(TtIncident *i, const uint8_t *text, uint32_t len, TtDiag *diag)
{
    uint32_t n = len ? text[0] : 0;
    bool is_fit = n && n <= TT_INCIDENT_MARK_MAX && len >= 1 + n &&
        len - 1 - n <= TT_INCIDENT_WHAT_MAX && !memchr(text, 0, len);

    if (is_fit) {
        memset(i->mark, 0, sizeof(i->mark));
        memset(i->what, 0, sizeof(i->what));
        memcpy(i->mark, text + 1, n);
        memcpy(i->what, text + 1 + n, len - 1 - n);
        for (uint32_t k = 0; k < n; k++) {
            is_fit &= g_ascii_isalnum(i->mark[k]) || strchr("._-", i->mark[k]);
        }
        tt_replace_controls(i->what, '?');
    }
    return is_fit ? TT_OK :
        tt_fail(diag, TT_ERR_FORMAT, "a message about an incident is damaged");
}

TtFrame tt_incident_put(const TtIncident *i, uint8_t text[TT_INCIDENT_TEXT_MAX])
{
    TtFrame f = {
        .is_recorded = true, .pos = i->pos, .seq = i->number, .data = text,
        .len = text_put(text, i), .is_incident = true,
    };

    memcpy(f.run, i->run, TT_RUN_BYTES);
    f.hash = tt_frame_hash(f.data, f.len);
    return f;
}

TtStatus tt_incident_get(TtIncident *i, const TtFrame *f, TtDiag *diag)
{
    memcpy(i->run, f->run, TT_RUN_BYTES);
    i->pos = f->pos;
    i->number = f->seq;
    return text_get(i, f->data, f->len, diag);
}

uint32_t tt_incident_note_put(uint8_t out[TT_INCIDENT_NOTE_MAX], const TtIncident *i)
{
    memcpy(out, i->run, TT_RUN_BYTES);
    tt_put_le64(out + TT_RUN_BYTES, i->pos);
    return TT_RUN_BYTES + 8 + text_put(out + TT_RUN_BYTES + 8, i);
}

TtStatus tt_incident_note_get(TtIncident *i, uint64_t number, const uint8_t *data,
                              uint32_t len, TtDiag *diag)
{
    if (len < TT_RUN_BYTES + 8) {
        return tt_fail(diag, TT_ERR_FORMAT, "a note of an incident is damaged");
    }
    memcpy(i->run, data, TT_RUN_BYTES);
    i->pos = tt_get_le64(data + TT_RUN_BYTES);
    i->number = number;
    return text_get(i, data + TT_RUN_BYTES + 8, len - TT_RUN_BYTES - 8, diag);
}

/* ---- authentication ---- */

static void digest_of(GHmac *mac, uint8_t out[TT_MAC_BYTES])
{
    gsize len = TT_MAC_BYTES;

    g_hmac_get_digest(mac, out, &len);
    assert(len == TT_MAC_BYTES);
    g_hmac_unref(mac);
}

void tt_frame_link_key(uint8_t out[TT_MAC_BYTES], const uint8_t *key, size_t key_len,
                       const char *group, const uint8_t from[TT_NONCE_BYTES],
                       const uint8_t to[TT_NONCE_BYTES], bool from_hub)
{
    const uint8_t role = from_hub;
    GHmac *mac = g_hmac_new(G_CHECKSUM_SHA256, key, key_len);

    g_hmac_update(mac, from, TT_NONCE_BYTES);
    g_hmac_update(mac, to, TT_NONCE_BYTES);
    g_hmac_update(mac, &role, 1);
    g_hmac_update(mac, (const guchar *)group, strlen(group));
    digest_of(mac, out);
}

void tt_frame_mac(uint8_t out[TT_MAC_BYTES], const uint8_t key[TT_MAC_BYTES],
                  const uint8_t head[TT_MESSAGE_HEAD_BYTES], const uint8_t *data,
                  uint32_t len)
{
    GHmac *mac = g_hmac_new(G_CHECKSUM_SHA256, key, TT_MAC_BYTES);

    g_hmac_update(mac, head, TT_MESSAGE_HEAD_BYTES);
    if (len) {
        g_hmac_update(mac, data, len);
    }
    digest_of(mac, out);
}

bool tt_mac_is_equal(const uint8_t a[TT_MAC_BYTES], const uint8_t b[TT_MAC_BYTES])
{
    uint8_t differs = 0;

    for (unsigned i = 0; i < TT_MAC_BYTES; i++) {
        differs |= a[i] ^ b[i];
    }
    return !differs;
}

/* ---- notes in a log ---- */

uint32_t tt_frame_out_put(uint8_t out[TT_FRAME_OUT_MAX], const TtFrame *f)
{
    tt_put_le64(out, f->hash);
    return tt_put_varint(out + 8, f->epoch) - out;
}

uint32_t tt_frame_in_put(uint8_t out[TT_FRAME_IN_MAX], const TtFrame *f)
{
    tt_put_le64(out, f->hash);
    memcpy(out + 8, f->run, TT_RUN_BYTES);
    return tt_put_varint(out + 8 + TT_RUN_BYTES, f->epoch) - out;
}

static TtStatus passed_get(TtFrame *f, const uint8_t *data, uint32_t len, uint32_t run_bytes,
                           TtDiag *diag)
{
    const uint8_t *at = NULL;
    uint64_t epoch = 0;

    if (len > 8 + run_bytes) {
        f->hash = tt_get_le64(data);
        memcpy(f->run, data + 8, run_bytes);
        at = tt_get_varint(data + 8 + run_bytes, data + len, &epoch);
    }
    if (!at || at != data + len || epoch > UINT32_MAX || f->len < TT_FRAME_BYTES_MIN ||
        f->len > TT_FRAME_BYTES_MAX) {
        return tt_fail(diag, TT_ERR_FORMAT, "the note of frame %" PRIu64 " is damaged",
                       f->seq);
    }
    f->epoch = epoch;
    return TT_OK;
}

TtStatus tt_frame_out_get(TtFrame *f, const uint8_t *data, uint32_t len, TtDiag *diag)
{
    return passed_get(f, data, len, 0, diag);
}

TtStatus tt_frame_in_get(TtFrame *f, const uint8_t *data, uint32_t len, TtDiag *diag)
{
    f->is_recorded = f->pos != TT_FRAME_NO_POS;
    if (f->is_recorded && f->pos > INT64_MAX) {
        return tt_fail(diag, TT_ERR_FORMAT, "the note of frame %" PRIu64 " names an "
                       "impossible position", f->seq);
    }
    return passed_get(f, data, len, TT_RUN_BYTES, diag);
}

#define NOTE_SENT_BYTES 12

uint32_t tt_frame_note_put(uint8_t out[TT_FRAME_NOTE_MAX], unsigned what,
                           const TtFrame *f)
{
    tt_put_le64(out, f->hash);
    tt_put_le32(out + 8, f->epoch);
    if (what == TT_FRAME_SENT) {
        return NOTE_SENT_BYTES;
    }
    memcpy(out + 12, f->run, TT_RUN_BYTES);
    tt_put_le64(out + 28, f->pos);
    return TT_FRAME_NOTE_MAX;
}

uint32_t tt_frame_kept_put(uint8_t *out, const TtFrame *f, const char *netdev,
                           uint32_t *n_rest)
{
    uint32_t at = tt_frame_note_put(out, TT_FRAME_KEPT, f);
    size_t n = strlen(netdev);

    n = n > TT_NETDEV_NAME_MAX ? 0 : n;
    out[at++] = n;
    memcpy(out + at, netdev, n);
    at += n;
    n = MIN(f->len, TT_FRAME_KEPT_MAX - at);
    memcpy(out + at, f->data, n);
    *n_rest = f->len - n;
    return at + n;
}

static TtStatus fail_note(uint64_t what, uint32_t len, TtDiag *diag)
{
    return tt_fail(diag, TT_ERR_FORMAT, "a note of a frame, %" PRIu64 " with %" PRIu32
                   " bytes, is damaged", what, len);
}

static bool is_length(uint32_t n)
{
    return n >= TT_FRAME_BYTES_MIN && n <= TT_FRAME_BYTES_MAX;
}

/* All that a note begins with, but the length of the frame. */
static void head_get(TtFrame *f, uint64_t seq, const uint8_t *data, bool has_sender)
{
    f->seq = seq;
    f->hash = tt_get_le64(data);
    f->epoch = tt_get_le32(data + 8);
    if (has_sender) {
        memcpy(f->run, data + 12, TT_RUN_BYTES);
        f->pos = tt_get_le64(data + 28);
        f->is_recorded = f->pos != TT_FRAME_NO_POS;
    }
}

TtStatus tt_frame_note_get(TtFrame *f, uint64_t what, uint64_t seq, uint32_t aux,
                           const uint8_t *data, uint32_t len, TtDiag *diag)
{
    *f = (TtFrame) { .pos = TT_FRAME_NO_POS };
    if (what == TT_FRAME_EPOCH && !len && seq <= TT_EPOCH_MAX && aux <= 1) {
        f->epoch = seq;
        return TT_OK;
    }
    if (what == TT_FRAME_BARE && !len && seq <= 1) {
        f->len = aux;
        return TT_OK;
    }
    if (!(what == TT_FRAME_SENT && len == NOTE_SENT_BYTES) &&
        !(what == TT_FRAME_DELIVERED && len == TT_FRAME_NOTE_MAX)) {
        return fail_note(what, len, diag);
    }
    if (!is_length(aux)) {
        return fail_note(what, len, diag);
    }
    f->len = aux;
    head_get(f, seq, data, what != TT_FRAME_SENT);
    return TT_OK;
}

/* ---- what was kept ---- */

static TtStatus kept_begin(TtKept *k, uint64_t seq, uint32_t aux, const uint8_t *data,
                           uint32_t len, TtDiag *diag)
{
    const uint32_t name_at = TT_FRAME_NOTE_MAX + 1;
    uint32_t at, n_name;

    k->frame = (TtFrame) { .len = 0 };
    k->n = 0;
    if (len < name_at || !is_length(aux)) {
        return fail_note(TT_FRAME_KEPT, len, diag);
    }
    n_name = data[TT_FRAME_NOTE_MAX];
    at = name_at + n_name;
    if (n_name > TT_NETDEV_NAME_MAX || len != MIN(at + aux, TT_FRAME_KEPT_MAX) ||
        memchr(data + name_at, 0, n_name)) {
        return fail_note(TT_FRAME_KEPT, len, diag);
    }
    head_get(&k->frame, seq, data, true);
    memcpy(k->netdev, data + name_at, n_name);
    k->netdev[n_name] = 0;
    k->n = len - at;
    memcpy(k->bytes, data + at, k->n);
    k->frame.len = aux;
    k->frame.data = k->bytes;
    return TT_OK;
}

static TtStatus kept_end(TtKept *k, uint32_t aux, const uint8_t *data, uint32_t len,
                         TtDiag *diag)
{
    if (aux != k->frame.len || len != aux - k->n) {
        return fail_note(TT_FRAME_REST, len, diag);
    }
    memcpy(k->bytes + k->n, data, len);
    k->n += len;
    return TT_OK;
}

TtStatus tt_kept_take(TtKept *k, uint64_t what, uint64_t seq, uint32_t aux,
                      const uint8_t *data, uint32_t len, TtDiag *diag)
{
    TtStatus st;

    if (what == TT_FRAME_KEPT) {
        st = kept_begin(k, seq, aux, data, len, diag);
    } else if (k->n == k->frame.len || seq != k->frame.seq) {
        return TT_END;
    } else {
        st = kept_end(k, aux, data, len, diag);
    }
    if (st) {
        return st;
    }
    if (k->n < k->frame.len) {
        return TT_END;
    }
    return tt_frame_hash(k->bytes, k->n) == k->frame.hash ? TT_OK :
        tt_fail(diag, TT_ERR_FORMAT, "frame %" PRIu64 ", kept for a checkpoint of the "
                "group, is damaged: its hash is wrong", seq);
}

void tt_run_text(char out[2 * TT_RUN_BYTES + 1], const uint8_t run[TT_RUN_BYTES])
{
    static const char digits[] = "0123456789abcdef";

    for (unsigned i = 0; i < TT_RUN_BYTES; i++) {
        out[2 * i] = digits[run[i] >> 4];
        out[2 * i + 1] = digits[run[i] & 15];
    }
    out[2 * TT_RUN_BYTES] = 0;
}
