/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The journal of an ext file system (JBD2; the format is in the kernel's documentation,
 * filesystems/ext4/journal.rst). All numbers are big-endian. From the superblock's start
 * on there are transactions: descriptors, each with the blocks that its tags name after
 * it, revocations, and a commit block at the end. One whose commit is missing never was.
 *
 * A table says where the newest copy of each block is. A transaction's tags are kept
 * aside until its commit; then they go into the table, and what it revokes goes out.
 */
#include "block-tt/tt-extjournal.h"

#include <glib.h>

#define HEAD            12      /* magic, type, sequence: of each block of the journal */
#define SUPER_BYTES     1024
#define TAG3_BYTES      16
#define TAG_BYTES       8

enum { DESCRIPTOR = 1, COMMIT = 2, SUPER_V1 = 3, SUPER_V2 = 4, REVOKE = 5 };

enum {
    HAS_REVOKE = 1, HAS_64BIT = 2, HAS_ASYNC = 4, HAS_CSUM_V2 = 8, HAS_CSUM_V3 = 16,
    HAS_FAST = 32, KNOWN = 63,
};

enum { FAST_HEAD = 9, FAST_HEAD_BYTES = 8 };

enum { ESCAPED = 1, SAME_UUID = 2, LAST_TAG = 8 };

typedef struct Place {
    uint64_t block;             /* of the file system: the key */
    uint32_t at;                /* of the journal */
    bool is_escaped, is_revoked;
} Place;

struct TtExtJournal {
    GHashTable *places;         /* of Place, by block */
    uint32_t transactions;
    bool has_fast;
};

typedef struct Reader {
    TtIo *io;
    TtExtJournal *j;
    uint32_t block_bytes;
    uint32_t first, end;        /* blocks that transactions go round in; fast commits are
                                   after them */
    uint32_t features;
    uint32_t sequence;
    GArray *pending;            /* of Place: of the transaction that is read */
    uint8_t *block;
    TtDiag *diag;
} Reader;

static uint32_t be32(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | p[1] << 16 | p[2] << 8 | p[3];
}

static TtStatus read_block(Reader *r, uint32_t n)
{
    size_t got = 0;
    TtStatus st = r->io->ops->read_at(r->io, (uint64_t)n * r->block_bytes, r->block,
                                      r->block_bytes, &got, r->diag);

    if (st == TT_OK && got < r->block_bytes) {
        return tt_fail(r->diag, TT_ERR_FORMAT, "the journal of the file system is "
                       "shorter than its header says");
    }
    return st;
}

static TtStatus read_super(Reader *r, uint32_t *start)
{
    uint32_t type, blocks, fast;
    TtStatus st = read_block(r, 0);

    if (st != TT_OK) {
        return st;
    }
    type = be32(r->block + 4);
    if (memcmp(r->block, TT_EXTJOURNAL_MAGIC, 4) != 0 ||
        (type != SUPER_V1 && type != SUPER_V2) ||
        be32(r->block + HEAD) != r->block_bytes) {
        return tt_fail(r->diag, TT_ERR_FORMAT, "the journal of the file system is damaged "
                       "at its beginning");
    }
    blocks = be32(r->block + 16);
    r->first = be32(r->block + 20);
    r->sequence = be32(r->block + 24);
    *start = be32(r->block + 28);
    r->features = type == SUPER_V2 ? be32(r->block + 40) : 0;
    fast = r->features & HAS_FAST ? be32(r->block + 84) : 0;
    if (r->features & HAS_FAST && !fast) {
        fast = 256;             /* what it is when the field is 0 */
    }
    if (r->features & ~KNOWN) {
        return tt_fail(r->diag, TT_ERR_VERSION, "the journal of the file system has "
                       "unknown features (0x%x)", r->features & ~KNOWN);
    }
    if (fast >= blocks || !r->first || r->first >= blocks - fast ||
        (*start && (*start < r->first || *start >= blocks - fast))) {
        return tt_fail(r->diag, TT_ERR_FORMAT, "the journal of the file system is damaged "
                       "at its beginning");
    }
    r->end = blocks - fast;
    return TT_OK;
}

static uint32_t next_of(const Reader *r, uint32_t at)
{
    return at + 1 < r->end ? at + 1 : r->first;
}

/* ---- one block of each kind ---- */

static uint32_t tag_bytes(const Reader *r)
{
    if (r->features & HAS_CSUM_V3) {
        return TAG3_BYTES;
    }
    return TAG_BYTES + (r->features & HAS_CSUM_V2 ? 2 : 0) +
           (r->features & HAS_64BIT ? 4 : 0);
}

/* Its tags; *@at goes after the blocks that they name. */
static void take_descriptor(Reader *r, uint32_t *at, uint32_t *left)
{
    uint32_t bytes = tag_bytes(r);
    uint32_t end = r->block_bytes -
                   (r->features & (HAS_CSUM_V2 | HAS_CSUM_V3) ? 4 : 0);

    for (uint32_t i = HEAD; i + bytes <= end && *left;) {
        const uint8_t *tag = r->block + i;
        bool is_v3 = r->features & HAS_CSUM_V3;
        uint32_t flags = is_v3 ? be32(tag + 4) : (uint32_t)tag[6] << 8 | tag[7];
        Place p = { .block = be32(tag), .at = *at, .is_escaped = flags & ESCAPED };

        if (r->features & HAS_64BIT) {
            p.block |= (uint64_t)be32(tag + 8) << 32;
        }
        g_array_append_val(r->pending, p);
        *at = next_of(r, *at);
        --*left;
        if (flags & LAST_TAG) {
            break;
        }
        i += bytes + (flags & SAME_UUID ? 0 : 16);
    }
}

static void take_revoke(Reader *r)
{
    uint32_t width = r->features & HAS_64BIT ? 8 : 4;
    uint32_t end = MIN(be32(r->block + HEAD), r->block_bytes);

    for (uint32_t i = HEAD + 4; i + width <= end; i += width) {
        Place p = { .block = be32(r->block + i), .is_revoked = true };

        if (width == 8) {
            p.block = p.block << 32 | be32(r->block + i + 4);
        }
        g_array_append_val(r->pending, p);
    }
}

static void take_commit(Reader *r)
{
    for (guint i = 0; i < r->pending->len; i++) {
        const Place *p = &g_array_index(r->pending, Place, i);

        if (!p->is_revoked) {
            Place *own = g_memdup2(p, sizeof(*p));

            g_hash_table_replace(r->j->places, &own->block, own);
        }
    }
    for (guint i = 0; i < r->pending->len; i++) {
        const Place *p = &g_array_index(r->pending, Place, i);

        if (p->is_revoked) {
            g_hash_table_remove(r->j->places, &p->block);
        }
    }
    g_array_set_size(r->pending, 0);
    r->j->transactions++;
    r->sequence++;
}

/* Each block once at most, so a circle ends. */
static TtStatus read_transactions(Reader *r, uint32_t start)
{
    uint32_t left = r->end - r->first, at = start;

    while (start && left) {
        TtStatus st = read_block(r, at);

        if (st != TT_OK) {
            return st;
        }
        if (memcmp(r->block, TT_EXTJOURNAL_MAGIC, 4) != 0 ||
            be32(r->block + 8) != r->sequence) {
            break;
        }
        at = next_of(r, at);
        left--;
        switch (be32(r->block + 4)) {
        case DESCRIPTOR:
            take_descriptor(r, &at, &left);
            break;
        case REVOKE:
            take_revoke(r);
            break;
        case COMMIT:
            take_commit(r);
            break;
        default:
            return TT_OK;
        }
    }
    return TT_OK;
}

/* A tag that says so, its length, features, and the number of the transaction that follows
 * those that are complete, all little-endian: then mounting carries out what is there. */
static TtStatus look_for_fast(Reader *r, uint32_t start)
{
    TtStatus st;

    if (!(r->features & HAS_FAST) || !start) {
        return TT_OK;
    }
    st = read_block(r, r->end);
    if (st == TT_OK) {
        r->j->has_fast = tt_get_le32(r->block) == (FAST_HEAD | FAST_HEAD_BYTES << 16) &&
                         tt_get_le32(r->block + 8) == r->sequence;
    }
    return st;
}

/* ---- the public part ---- */

TtStatus tt_extjournal_open(TtIo *journal, uint32_t block_bytes, TtExtJournal **out,
                            TtDiag *diag)
{
    Reader r = { .io = journal, .block_bytes = block_bytes, .diag = diag };
    uint32_t start = 0;
    TtStatus st;

    *out = NULL;
    if (block_bytes < SUPER_BYTES || block_bytes > 65536) {
        return tt_fail(diag, TT_ERR_FORMAT, "the file system has an impossible block "
                       "size, %u bytes",
                       block_bytes);
    }
    r.j = g_new0(TtExtJournal, 1);
    r.j->places = g_hash_table_new_full(g_int64_hash, g_int64_equal, NULL, g_free);
    r.pending = g_array_new(false, true, sizeof(Place));
    r.block = g_malloc(block_bytes);
    st = read_super(&r, &start);
    if (st == TT_OK) {
        st = read_transactions(&r, start);
    }
    if (st == TT_OK) {
        st = look_for_fast(&r, start);
    }
    g_array_free(r.pending, true);
    g_free(r.block);
    if (st != TT_OK) {
        tt_extjournal_free(r.j);
        return st;
    }
    *out = r.j;
    return TT_OK;
}

void tt_extjournal_free(TtExtJournal *j)
{
    if (j) {
        g_hash_table_destroy(j->places);
        g_free(j);
    }
}

uint32_t tt_extjournal_transactions(const TtExtJournal *j)
{
    return j->transactions;
}

bool tt_extjournal_has_fast(const TtExtJournal *j)
{
    return j->has_fast;
}

uint32_t tt_extjournal_blocks(const TtExtJournal *j)
{
    return g_hash_table_size(j->places);
}

bool tt_extjournal_find(const TtExtJournal *j, uint64_t block, uint32_t *at,
                        bool *is_escaped)
{
    const Place *p = g_hash_table_lookup(j->places, &block);

    if (p) {
        *at = p->at;
        *is_escaped = p->is_escaped;
    }
    return p != NULL;
}
