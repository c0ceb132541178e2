/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A part of a disk as an I/O manager of libext2fs: read-only, with a cache, and with the
 * newest copies of blocks that are still in the file system's journal. So a version that
 * was taken while its guest ran looks as it would when it is mounted.
 */
#include "tt-tool-disk.h"

#ifdef TT_HAVE_EXT2FS

#include "tt-tool-extio.h"

#include <string.h>

#define CACHE_LINES     4096
#define MANAGER_MAGIC   EXT2_ET_MAGIC_IO_MANAGER

typedef struct Channel {
    ToolExtVolume *v;
    uint64_t tag[CACHE_LINES];          /* block + 1; 0: nothing */
    uint8_t *line;                      /* CACHE_LINES blocks */
    unsigned block_bytes;
} Channel;

/* libext2fs opens by name. */
static ToolExtVolume *opening;

static errcode_t read_bytes(ToolExtVolume *v, uint64_t at, void *buf, size_t len)
{
    size_t got = 0;

    if (at > v->len || len > v->len - at) {
        return EXT2_ET_SHORT_READ;
    }
    return v->disk->ops->read_at(v->disk, v->start + at, buf, len, &got, NULL) == TT_OK &&
           got == len ? 0 : EXT2_ET_SHORT_READ;
}

static errcode_t read_one(Channel *c, uint64_t block, uint8_t *buf)
{
    ToolExtVolume *v = c->v;
    bool is_escaped;
    uint32_t at;
    errcode_t err;

    if (block > UINT64_MAX / c->block_bytes) {
        return EXT2_ET_SHORT_READ;
    }
    if (!v->journal || c->block_bytes != v->journal_block_bytes ||
        !tt_extjournal_find(v->journal, block, &at, &is_escaped)) {
        return read_bytes(v, block * c->block_bytes, buf, c->block_bytes);
    }
    if (at >= v->journal_blocks) {
        return EXT2_ET_SHORT_READ;
    }
    err = read_bytes(v, v->journal_block[at] * c->block_bytes, buf, c->block_bytes);
    if (is_escaped) {
        memcpy(buf, TT_EXTJOURNAL_MAGIC, 4);
    }
    return err;
}

static errcode_t read_block(Channel *c, uint64_t block, uint8_t *buf)
{
    unsigned i = block % CACHE_LINES;
    uint8_t *line = c->line + (size_t)i * c->block_bytes;

    if (c->tag[i] != block + 1) {
        errcode_t err;

        c->tag[i] = 0;
        err = read_one(c, block, line);
        if (err) {
            return err;
        }
        c->tag[i] = block + 1;
    }
    memcpy(buf, line, c->block_bytes);
    return 0;
}

static errcode_t io_read64(io_channel channel, unsigned long long block, int count,
                           void *data)
{
    Channel *c = channel->private_data;
    size_t len = count < 0 ? (size_t)-(int64_t)count : (size_t)count * c->block_bytes;
    g_autofree uint8_t *last = NULL;

    for (uint8_t *to = data; len; block++) {
        size_t part = MIN(len, c->block_bytes);
        errcode_t err;

        if (part < c->block_bytes) {
            last = g_malloc(c->block_bytes);
        }
        err = read_block(c, block, last ? last : to);
        if (err) {
            return err;
        }
        if (last) {
            memcpy(to, last, part);
        }
        to += part;
        len -= part;
    }
    return 0;
}

static errcode_t io_read(io_channel channel, unsigned long block, int count, void *data)
{
    return io_read64(channel, block, count, data);
}

static errcode_t io_set_blksize(io_channel channel, int bytes)
{
    Channel *c = channel->private_data;

    if (bytes < 1024 || bytes > 65536) {
        return EXT2_ET_UNEXPECTED_BLOCK_SIZE;
    }
    g_free(c->line);
    c->line = g_malloc((size_t)CACHE_LINES * bytes);
    memset(c->tag, 0, sizeof(c->tag));
    c->block_bytes = channel->block_size = bytes;
    return 0;
}

static errcode_t io_open(const char *name, int flags, io_channel *out);

static errcode_t io_close(io_channel channel)
{
    Channel *c = channel->private_data;

    if (--channel->refcount > 0) {
        return 0;
    }
    g_free(c->line);
    g_free(c);
    g_free(channel->name);
    g_free(channel);
    return 0;
}

static errcode_t io_write(io_channel channel, unsigned long block, int count,
                          const void *data)
{
    return EXT2_ET_RO_FILSYS;
}

static errcode_t io_flush(io_channel channel)
{
    return 0;
}

static struct struct_io_manager manager = {
    .magic = MANAGER_MAGIC, .name = "tt", .open = io_open, .close = io_close,
    .set_blksize = io_set_blksize, .read_blk = io_read, .read_blk64 = io_read64,
    .write_blk = io_write, .flush = io_flush,
};

static errcode_t io_open(const char *name, int flags, io_channel *out)
{
    io_channel channel = g_new0(struct struct_io_channel, 1);
    Channel *c = g_new0(Channel, 1);

    c->v = opening;
    channel->magic = EXT2_ET_MAGIC_IO_CHANNEL;
    channel->manager = &manager;
    channel->name = g_strdup(name);
    channel->refcount = 1;
    channel->private_data = c;
    *out = channel;
    return io_set_blksize(channel, 1024);
}

/* ---- opening ---- */

/* The last 64 bytes before: libext2fs wants to see features that it knows. */
static errcode_t open_volume(ToolExtVolume *v, ext2_filsys *fs)
{
    opening = v;
    return ext2fs_open2("tt", NULL, EXT2_FLAG_64BITS | EXT2_FLAG_SKIP_MMP |
                        EXT2_FLAG_SOFTSUPP_FEATURES, 0, 0, &manager, fs);
}

/* ---- the journal, read through libext2fs: where its blocks are ---- */

typedef struct JournalIo {
    TtIo io;
    ToolExtVolume *v;
    uint32_t block_bytes;
} JournalIo;

static TtStatus journal_read_at(TtIo *io, uint64_t offset, void *buf, size_t len,
                                size_t *got, TtDiag *diag)
{
    JournalIo *j = (JournalIo *)io;
    uint64_t block = offset / j->block_bytes;

    *got = 0;
    if (block >= j->v->journal_blocks) {
        return TT_OK;
    }
    if (read_bytes(j->v, j->v->journal_block[block] * j->block_bytes, buf, len)) {
        return tt_fail(diag, TT_ERR_IO, "the journal of the file system cannot be read");
    }
    *got = len;
    return TT_OK;
}

static const TtIoOps journal_ops = { .read_at = journal_read_at };

static int take_journal_block(ext2_filsys fs, blk64_t *block, e2_blkcnt_t n,
                              blk64_t parent, int offset, void *opaque)
{
    GArray *blocks = opaque;
    uint64_t b = *block;

    if (n < 0) {
        return 0;
    }
    if (n != blocks->len || b >= ext2fs_blocks_count(fs->super)) {
        return BLOCK_ABORT;             /* a hole, or outside: it is no journal */
    }
    g_array_append_val(blocks, b);
    return 0;
}

/* What its journal has not yet put into place. False: said why not. */
static bool read_journal(ToolExtVolume *v, ext2_filsys fs, const char *what)
{
    GArray *blocks = g_array_new(false, false, sizeof(uint64_t));
    JournalIo io = { .io.ops = &journal_ops, .v = v, .block_bytes = fs->blocksize };
    TtDiag diag;

    (void)ext2fs_block_iterate3(fs, fs->super->s_journal_inum, BLOCK_FLAG_READ_ONLY, NULL,
                                take_journal_block, blocks);
    v->journal_blocks = blocks->len;
    v->journal_block = (uint64_t *)g_array_free(blocks, false);
    v->journal_block_bytes = fs->blocksize;
    if (tt_extjournal_open(&io.io, fs->blocksize, &v->journal, &diag) != TT_OK) {
        tool_complain("%s: %s", what, diag.text);
        return false;
    }
    if (tt_extjournal_has_fast(v->journal)) {
        g_autofree char *text = g_strdup_printf("%s: its last changes are fast commits of "
                                                "ext4, which are not seen", what);

        tool_note(text);
    }
    return true;
}

ext2_filsys tool_ext_open(ToolExtVolume *v, const char *what)
{
    ext2_filsys fs = NULL;
    errcode_t err = open_volume(v, &fs);

    if (!err && ext2fs_has_feature_journal_needs_recovery(fs->super)) {
        bool ok = true;

        if (fs->super->s_journal_inum) {
            ok = read_journal(v, fs, what);
        } else {
            tool_complain("%s: its journal is on another disk, so its last changes are "
                          "not seen", what);
        }
        ext2fs_free(fs);                /* the superblock may be in the journal, too */
        fs = NULL;
        err = ok ? open_volume(v, &fs) : EXT2_ET_CORRUPT_JOURNAL_SB;
    }
    if (err) {
        tool_complain("%s: the file system cannot be read: %s", what, error_message(err));
        return NULL;
    }
    return fs;
}

void tool_ext_close(ToolExtVolume *v, ext2_filsys fs)
{
    if (fs) {
        ext2fs_free(fs);
    }
    tt_extjournal_free(v->journal);
    g_free(v->journal_block);
    v->journal = NULL;
    v->journal_block = NULL;
}

#endif
