/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzz target of the readers of the contents of disks: partition tables, and the
 * journal of ext file systems. First byte even: the bytes are the beginning of a disk,
 * odd: they are a journal. Everything that is found must lie inside.
 */
#include "block-tt/tt-diskparts.h"
#include "block-tt/tt-extjournal.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MORE (1 << 16)          /* zeros after */
#define BLOCK 1024

static void expect(bool what)
{
    if (!what) {
        abort();
    }
}

static void use_parts(TtIo *disk)
{
    TtDiskPart part[TT_DISKPARTS_MAX];
    uint64_t bytes;
    unsigned n;

    disk->ops->size(disk, &bytes, NULL);
    expect(tt_diskparts_read(disk, part, &n, NULL) == TT_OK && n <= TT_DISKPARTS_MAX);
    for (unsigned i = 0; i < n; i++) {
        expect(part[i].number && part[i].len && part[i].start < bytes &&
               part[i].len <= bytes - part[i].start);
    }
}

static void use_journal(TtIo *io)
{
    TtExtJournal *j;
    bool is_escaped;
    uint32_t at;
    TtDiag diag;

    if (tt_extjournal_open(io, BLOCK, &j, &diag) != TT_OK) {
        expect(*diag.text);
        return;
    }
    for (uint64_t block = 0; block < 64; block++) {
        (void)tt_extjournal_find(j, block, &at, &is_escaped);
    }
    tt_extjournal_free(j);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *bytes;
    TtIo *io;

    if (!size) {
        return 0;
    }
    bytes = calloc(1, size + MORE);
    memcpy(bytes, data + 1, size - 1);
    io = tt_io_mem_new(bytes, size + MORE);
    (data[0] & 1 ? use_journal : use_parts)(io);
    tt_io_close(io);
    free(bytes);
    return 0;
}
