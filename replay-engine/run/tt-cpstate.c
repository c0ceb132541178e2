/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Encodes and decodes the state of a checkpoint, without RAM. The format is in
 * docs/reference/checkpoint-state.rst.
 */
#include "run/tt-cpstate.h"

#include <assert.h>
#include <glib.h>

#define MAGIC       0x50435454u         /* "TTCP" */
#define VERSION     1u
#define VERSION_FULL 2u                 /* has a full state */
#define VERSION_PAGING 3u               /* may have one; ends with the page tables in use */

/* Offsets in the head. */
#define AT_MAGIC    0
#define AT_VERSION  4
#define AT_SEGMENT  8
#define AT_INDEX    16
#define AT_FLAGS    20
#define AT_BLOCKS   24
#define AT_CPU_LEN  28
#define AT_OUTPUT   32
#define AT_EVENTS   40
#define AT_MAP_LEN  48                  /* one for each address space */
#define AT_BLOCKS_LEN (AT_MAP_LEN + 4 * TT_CPSTATE_SPACES)
#define AT_FULL_LEN (AT_BLOCKS_LEN + 4)
#define HEAD_BYTES  (AT_BLOCKS_LEN + 8)

#define FLAG_HALTED 1u

static uint8_t *put(uint8_t *at, TtBytes b)
{
    if (b.len) {
        memcpy(at, b.data, b.len);
    }
    return at + b.len;
}

uint8_t *tt_cpstate_encode(const TtCpState *s, uint32_t *len)
{
    uint32_t n = HEAD_BYTES + s->cpu.len + s->blocks.len + s->full.len + s->paging.len;
    uint8_t *bytes, *at;

    assert(s->cpu.len <= TT_CPSTATE_CPU_MAX);
    assert(s->blocks.len <= TT_CPSTATE_BLOCKS_MAX);
    assert(s->full.len <= TT_CPSTATE_FULL_MAX);
    assert(s->paging.len <= TT_CPSTATE_PAGING_MAX);
    for (unsigned i = 0; i < TT_CPSTATE_SPACES; i++) {
        assert(s->map[i].len <= TT_CPSTATE_MAP_MAX);
        n += s->map[i].len;
    }
    bytes = g_malloc0(n);
    tt_put_le32(bytes + AT_MAGIC, MAGIC);
    tt_put_le32(bytes + AT_VERSION, s->paging.len ? VERSION_PAGING :
                s->full.len ? VERSION_FULL : VERSION);
    tt_put_le64(bytes + AT_SEGMENT, s->segment);
    tt_put_le32(bytes + AT_INDEX, s->index);
    tt_put_le32(bytes + AT_FLAGS, s->halted ? FLAG_HALTED : 0);
    tt_put_le32(bytes + AT_BLOCKS, s->n_blocks);
    tt_put_le32(bytes + AT_CPU_LEN, s->cpu.len);
    tt_put_le64(bytes + AT_OUTPUT, s->output_hash);
    tt_put_le64(bytes + AT_EVENTS, s->events);
    tt_put_le32(bytes + AT_BLOCKS_LEN, s->blocks.len);
    tt_put_le32(bytes + AT_FULL_LEN, s->full.len);
    at = bytes + HEAD_BYTES;
    for (unsigned i = 0; i < TT_CPSTATE_SPACES; i++) {
        tt_put_le32(bytes + AT_MAP_LEN + 4 * i, s->map[i].len);
        at = put(at, s->map[i]);
    }
    at = put(at, s->blocks);
    at = put(at, s->cpu);
    at = put(at, s->full);
    put(at, s->paging);
    *len = n;
    return bytes;
}

static TtStatus damaged(TtDiag *diag)
{
    return tt_fail(diag, TT_ERR_FORMAT, "the state of a checkpoint is damaged: "
                   "delete RUN/pages and RUN/checkpoints, the run replays "
                   "without them");
}

/* Takes @len bytes off the front of @rest. */
static bool take(TtBytes *rest, uint32_t len, uint32_t most, TtBytes *out)
{
    if (len > most || len > rest->len) {
        return false;
    }
    *out = (TtBytes) { .data = rest->data, .len = len };
    rest->data += len;
    rest->len -= len;
    return true;
}

TtStatus tt_cpstate_decode(TtBytes bytes, TtCpState *out, TtDiag *diag)
{
    const uint8_t *h = bytes.data;
    uint32_t version;
    TtBytes rest;

    memset(out, 0, sizeof(*out));
    if (bytes.len < HEAD_BYTES || tt_get_le32(h + AT_MAGIC) != MAGIC) {
        return damaged(diag);
    }
    version = tt_get_le32(h + AT_VERSION);
    if (version < VERSION || version > VERSION_PAGING) {
        return tt_fail(diag, TT_ERR_VERSION, "the checkpoints were made by a "
                       "newer TTVM: use that version, or delete RUN/pages and "
                       "RUN/checkpoints");
    }
    out->segment = tt_get_le64(h + AT_SEGMENT);
    out->index = tt_get_le32(h + AT_INDEX);
    out->halted = tt_get_le32(h + AT_FLAGS) & FLAG_HALTED;
    out->n_blocks = tt_get_le32(h + AT_BLOCKS);
    out->output_hash = tt_get_le64(h + AT_OUTPUT);
    out->events = tt_get_le64(h + AT_EVENTS);
    rest = (TtBytes) { .data = h + HEAD_BYTES, .len = bytes.len - HEAD_BYTES };
    for (unsigned i = 0; i < TT_CPSTATE_SPACES; i++) {
        if (!take(&rest, tt_get_le32(h + AT_MAP_LEN + 4 * i),
                  TT_CPSTATE_MAP_MAX, &out->map[i])) {
            return damaged(diag);
        }
    }
    if (!take(&rest, tt_get_le32(h + AT_BLOCKS_LEN), TT_CPSTATE_BLOCKS_MAX,
              &out->blocks) ||
        !take(&rest, tt_get_le32(h + AT_CPU_LEN), TT_CPSTATE_CPU_MAX,
              &out->cpu) ||
        !take(&rest, version >= VERSION_FULL ? tt_get_le32(h + AT_FULL_LEN) : 0,
              TT_CPSTATE_FULL_MAX, &out->full) ||
        !take(&rest, version == VERSION_PAGING ? rest.len : 0, TT_CPSTATE_PAGING_MAX,
              &out->paging) || rest.len) {
        return damaged(diag);
    }
    return TT_OK;
}

#define BLOCK_BYTES 16          /* size, flags, length of the name */

bool tt_cpstate_next_block(TtBytes *rest, TtCpBlock *b)
{
    TtBytes head;

    if (!take(rest, BLOCK_BYTES, BLOCK_BYTES, &head)) {
        return false;
    }
    b->size_bytes = tt_get_le64(head.data);
    b->flags = tt_get_le32(head.data + 8);
    return take(rest, tt_get_le32(head.data + 12), TT_CPSTATE_BLOCKS_MAX,
                &b->name);
}
