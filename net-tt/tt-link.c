/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One end of a link: hello, READY, frames, incidents and the numbers of the group's
 * checkpoints; see the states in tt-link.h.
 */
#include "net-tt/tt-link.h"

#include <assert.h>
#include <glib.h>
#include <inttypes.h>

typedef enum LinkState { WANTS_HELLO, WANTS_READY, OPEN, BROKEN } LinkState;

struct TtLink {
    LinkState state;
    TtHello mine, peers;
    uint8_t *key;
    size_t key_len;
    uint8_t out_key[TT_MAC_BYTES], in_key[TT_MAC_BYTES];
    uint64_t out_number, in_number;
    uint32_t epoch;             /* the highest that the peer has said */
    GByteArray *in, *out;
    size_t used;                /* of @in: was taken */
    bool is_refused;            /* by the peer, which said so */
    TtDiag why;                 /* BROKEN */
};

TtLink *tt_link_new(const TtLinkOptions *o)
{
    TtLink *l = g_new0(TtLink, 1);
    uint8_t hello[TT_HELLO_BYTES];

    assert(tt_group_name_is_fit(o->group) && !o->key == !o->key_len);
    l->key = g_memdup2(o->key, o->key_len);
    l->key_len = o->key_len;
    l->mine.is_authenticated = o->key;
    l->mine.is_hub = o->is_hub;
    memcpy(l->mine.nonce, o->nonce, TT_NONCE_BYTES);
    g_strlcpy(l->mine.group, o->group, sizeof(l->mine.group));
    l->in = g_byte_array_new();
    l->out = g_byte_array_new();
    tt_hello_put(hello, &l->mine);
    g_byte_array_append(l->out, hello, sizeof(hello));
    return l;
}

void tt_link_free(TtLink *l)
{
    if (l) {
        g_free(l->key);
        g_byte_array_free(l->in, true);
        g_byte_array_free(l->out, true);
        g_free(l);
    }
}

bool tt_link_is_open(const TtLink *l)
{
    return l->state == OPEN;
}

bool tt_link_is_refused(const TtLink *l)
{
    return l->is_refused;
}

const uint8_t *tt_link_out(const TtLink *l, size_t *len)
{
    *len = l->out->len;
    return l->out->data;
}

void tt_link_sent(TtLink *l, size_t len)
{
    g_byte_array_remove_range(l->out, 0, len);
}

/* ---- out ---- */

static void append(TtLink *l, TtMessage *m)
{
    uint8_t head[TT_MESSAGE_HEAD_BYTES], mac[TT_MAC_BYTES];

    m->number = l->out_number++;
    tt_message_put(head, m);
    g_byte_array_append(l->out, head, sizeof(head));
    if (l->key) {
        tt_frame_mac(mac, l->out_key, head, m->frame.data, m->frame.len);
        g_byte_array_append(l->out, mac, sizeof(mac));
    }
    if (m->frame.len) {
        g_byte_array_append(l->out, m->frame.data, m->frame.len);
    }
}

void tt_link_send(TtLink *l, const TtFrame *f)
{
    TtMessage m = { .kind = TT_MESSAGE_FRAME, .frame = *f };

    assert(tt_link_is_open(l) && f->len >= TT_FRAME_BYTES_MIN &&
           f->len <= TT_FRAME_BYTES_MAX);
    append(l, &m);
}

void tt_link_send_epoch(TtLink *l, uint32_t epoch)
{
    TtMessage m = {
        .kind = TT_MESSAGE_EPOCH, .frame = { .pos = TT_FRAME_NO_POS, .epoch = epoch },
    };

    assert(tt_link_is_open(l) && epoch <= TT_EPOCH_MAX);
    append(l, &m);
}

void tt_link_send_incident(TtLink *l, const TtIncident *i)
{
    uint8_t text[TT_INCIDENT_TEXT_MAX];
    TtMessage m = { .kind = TT_MESSAGE_INCIDENT, .frame = tt_incident_put(i, text) };

    assert(tt_link_is_open(l) && i->pos <= INT64_MAX);
    append(l, &m);
}

/* Before the peer's hello there is no key for a MAC, and who waits for READY needs none. */
void tt_link_refuse(TtLink *l, TtRefusal why)
{
    TtMessage m = {
        .kind = TT_MESSAGE_REFUSED, .frame = { .pos = TT_FRAME_NO_POS, .seq = why },
    };
    uint8_t bytes[TT_MESSAGE_HEAD_BYTES + TT_MAC_BYTES] = { 0 };

    if (l->out_number) {
        append(l, &m);
        return;
    }
    tt_message_put(bytes, &m);
    g_byte_array_append(l->out, bytes, TT_MESSAGE_HEAD_BYTES + (l->key ? TT_MAC_BYTES : 0));
}

uint32_t tt_link_epoch(const TtLink *l)
{
    return l->epoch;
}

/* ---- in ---- */

const char *tt_refusal_text(uint64_t why)
{
    switch (why) {
    case TT_REFUSED_HAS_PEER:
        return "the other side has its peer already: use tt hub to connect more than two";
    case TT_REFUSED_HAS_MEMBERS:
        return "the hub has all its members already (--members)";
    case TT_REFUSED_IS_FULL:
        return "the hub has no room for another member";
    default:
        return "the other side takes no peer now";
    }
}

void tt_link_put(TtLink *l, const uint8_t *bytes, size_t len)
{
    assert(len <= TT_LINK_PUT_MAX);
    if (l->state != BROKEN) {
        g_byte_array_remove_range(l->in, 0, l->used);
        l->used = 0;
        g_byte_array_append(l->in, bytes, len);
    }
}

/* The next @len bytes, or NULL. They are not taken yet. */
static const uint8_t *peek(const TtLink *l, size_t len)
{
    return l->in->len - l->used >= len ? l->in->data + l->used : NULL;
}

static TtStatus greet(TtLink *l, const uint8_t *bytes, TtDiag *diag)
{
    TtMessage ready = { .kind = TT_MESSAGE_READY, .frame.pos = TT_FRAME_NO_POS };
    TtStatus st = tt_hello_get(&l->peers, bytes, diag);
    const TtHello *a = &l->mine, *b = &l->peers;

    if (st) {
        return st;
    }
    if (strcmp(a->group, b->group)) {
        return tt_fail(diag, TT_ERR_INVALID, "the peer belongs to the group '%s', not "
                       "to '%s'", b->group, a->group);
    }
    if (a->is_authenticated != b->is_authenticated) {
        return tt_fail(diag, TT_ERR_INVALID, "the peer has %s key and this side has "
                       "%s: give both the same key-file, or neither",
                       b->is_authenticated ? "a" : "no",
                       a->is_authenticated ? "one" : "none");
    }
    if (a->is_hub && b->is_hub) {
        return tt_fail(diag, TT_ERR_INVALID, "the peer is a hub, too: a hub connects "
                       "only members");
    }
    if (!memcmp(a->nonce, b->nonce, TT_NONCE_BYTES)) {
        return tt_fail(diag, TT_ERR_INVALID, "the peer sends back what this side sent: "
                       "is it connected to itself?");
    }
    if (l->key) {
        tt_frame_link_key(l->out_key, l->key, l->key_len, a->group, a->nonce, b->nonce,
                          a->is_hub);
        tt_frame_link_key(l->in_key, l->key, l->key_len, a->group, b->nonce, a->nonce,
                          b->is_hub);
    }
    append(l, &ready);
    l->state = WANTS_READY;
    return TT_OK;
}

static TtStatus refused(TtLink *l, const TtFrame *f, TtDiag *diag)
{
    l->is_refused = true;
    return tt_fail(diag, TT_ERR_INVALID, "%s", tt_refusal_text(f->seq));
}

static TtStatus check_message(TtLink *l, const TtMessage *m, const uint8_t *head,
                              TtDiag *diag)
{
    const TtFrame *f = &m->frame;
    uint8_t mac[TT_MAC_BYTES];
    bool is_first = l->state == WANTS_READY;

    if (is_first && m->kind == TT_MESSAGE_REFUSED) {
        return refused(l, f, diag);
    }
    if (l->key) {
        tt_frame_mac(mac, l->in_key, head, f->data, f->len);
        if (!tt_mac_is_equal(mac, head + TT_MESSAGE_HEAD_BYTES)) {
            return tt_fail(diag, TT_ERR_INVALID, is_first ? "the peer has another key: "
                           "give all members of the group the same key-file" :
                           "a message is not from a member of the group: its "
                           "authentication is wrong");
        }
    }
    if (m->number != l->in_number || is_first != (m->kind == TT_MESSAGE_READY)) {
        return tt_fail(diag, TT_ERR_FORMAT, "message %" PRIu64 " of kind %u is out of "
                       "order", m->number, m->kind);
    }
    l->in_number++;
    return m->kind == TT_MESSAGE_REFUSED ? refused(l, f, diag) : TT_OK;
}

/* The next message, of whatever kind. */
static TtStatus take_message(TtLink *l, uint8_t *kind, TtFrame *f, TtDiag *diag)
{
    size_t head_len = TT_MESSAGE_HEAD_BYTES + (l->key ? TT_MAC_BYTES : 0);
    const uint8_t *head = peek(l, head_len);
    TtMessage m;
    TtStatus st;

    if (!head) {
        return TT_END;
    }
    st = tt_message_get(&m, head, diag);
    if (st) {
        return st;
    }
    head = peek(l, head_len + m.frame.len);
    if (!head) {
        return TT_END;
    }
    m.frame.data = head + head_len;
    st = check_message(l, &m, head, diag);
    if (st) {
        return st;
    }
    l->used += head_len + m.frame.len;
    l->state = OPEN;
    *f = m.frame;
    *kind = m.kind;
    f->is_epoch = m.kind == TT_MESSAGE_EPOCH;
    if (f->is_epoch && f->epoch > l->epoch) {
        l->epoch = f->epoch;
    }
    if (f->len && tt_frame_hash(f->data, f->len) != f->hash) {
        return tt_fail(diag, TT_ERR_MISMATCH, "%s %" PRIu64 " was damaged on its way: its "
                       "hash is wrong", f->is_incident ? "the message about incident" :
                       "frame", f->seq);
    }
    return f->is_incident ? tt_incident_get(&(TtIncident) { 0 }, f, diag) : TT_OK;
}

/* Hello and READY of the peer. */
static TtStatus meet(TtLink *l, TtDiag *diag)
{
    uint8_t kind;
    TtFrame ready;

    if (l->state == WANTS_HELLO) {
        const uint8_t *hello = peek(l, TT_HELLO_BYTES);
        TtStatus st;

        if (!hello) {
            return TT_END;
        }
        l->used += TT_HELLO_BYTES;
        st = greet(l, hello, diag);
        if (st) {
            return st;
        }
    }
    return l->state == WANTS_READY ? take_message(l, &kind, &ready, diag) : TT_OK;
}

static TtStatus take(TtLink *l, TtFrame *f, TtDiag *diag)
{
    uint8_t kind = TT_MESSAGE_READY;
    TtStatus st = meet(l, diag);

    while (!st && kind != TT_MESSAGE_FRAME && kind != TT_MESSAGE_INCIDENT &&
           !(l->mine.is_hub && kind == TT_MESSAGE_EPOCH)) {
        st = take_message(l, &kind, f, diag);
    }
    return st;
}

/* What came of a step: an error breaks the link, unless it costs a frame only. */
static TtStatus done(TtLink *l, TtStatus st, const TtDiag *why, TtDiag *diag)
{
    if (st < 0 && st != TT_ERR_MISMATCH && l->state != BROKEN) {
        l->state = BROKEN;
        l->why = *why;
    }
    if (st < 0 && diag) {
        *diag = l->state == BROKEN ? l->why : *why;
    }
    return st;
}

TtStatus tt_link_meet(TtLink *l, TtDiag *diag)
{
    TtDiag why = { 0 };

    return done(l, l->state == BROKEN ? l->why.status : meet(l, &why), &why, diag);
}

TtStatus tt_link_next(TtLink *l, TtFrame *f, TtDiag *diag)
{
    TtDiag why = { 0 };

    return done(l, l->state == BROKEN ? l->why.status : take(l, f, &why), &why, diag);
}

/* ---- frames that came before ---- */

static TtHeardRun *find_run(TtHeard *h, const uint8_t *run)
{
    TtHeardRun *oldest = h->runs;

    for (unsigned i = 0; i < h->n; i++) {
        if (!memcmp(h->runs[i].run, run, TT_RUN_BYTES)) {
            return &h->runs[i];
        }
        if (h->runs[i].used < oldest->used) {
            oldest = &h->runs[i];
        }
    }
    if (h->n < TT_HEARD_RUNS) {
        oldest = &h->runs[h->n++];
    }
    memset(oldest, 0, sizeof(*oldest));
    memcpy(oldest->run, run, TT_RUN_BYTES);
    return oldest;
}

/* The @n sequences from @from on are not heard of yet; a word of bits at a time, since a peer
 * may leave out as many as it likes. */
static void forget(TtHeardRun *r, uint64_t from, uint64_t n)
{
    if (n >= TT_HEARD_WINDOW) {
        memset(r->bits, 0, sizeof(r->bits));
        return;
    }
    while (n) {
        unsigned low = from % 64;
        uint64_t k = MIN(64 - low, n);

        r->bits[from % TT_HEARD_WINDOW / 64] &= ~(UINT64_MAX >> (64 - k) << low);
        from += k;
        n -= k;
    }
}

bool tt_heard_is_new(TtHeard *h, const TtFrame *f)
{
    TtHeardRun *r = find_run(h, f->run);
    uint64_t bit = f->seq % TT_HEARD_WINDOW;

    r->used = ++h->clock;
    if (f->seq == UINT64_MAX) {
        return false;                   /* nothing is above it */
    }
    if (f->seq >= r->next) {
        forget(r, r->next, f->seq - r->next);
        r->next = f->seq + 1;
        r->bits[bit / 64] |= 1ull << bit % 64;
        return true;
    }
    if (r->next - f->seq > TT_HEARD_WINDOW || r->bits[bit / 64] >> bit % 64 & 1) {
        return false;
    }
    r->bits[bit / 64] |= 1ull << bit % 64;
    return true;
}

/* ---- how many incidents are taken ---- */

bool tt_burst_is_over(TtBurst *b, unsigned max, int64_t now_ms)
{
    assert(max && max <= TT_BURST_MAX);
    if (b->n == max && now_ms - b->at_ms[b->next] <= TT_BURST_MS) {
        return true;
    }
    b->at_ms[b->next] = now_ms;
    b->next = (b->next + 1) % max;
    b->n += b->n < max;
    return false;
}
