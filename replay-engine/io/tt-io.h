/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * TtIo: the only way in and out for bytes. A core that reads or writes a file
 * gets one of these; tests give it memory, or memory that fails at the Nth
 * operation, and fuzzers give it hostile bytes.
 *
 * Context: any thread, one thread per object unless the implementation says
 * otherwise (posix: read_at from several threads is fine). Calls may block.
 * Ownership: tt_io_close frees. Errors: TtStatus, errno kept in TtDiag.
 */
#ifndef TT_IO_H
#define TT_IO_H

#include "io/tt-base.h"

typedef struct TtIo TtIo;

typedef struct TtIoOps {
    TtStatus (*size)(TtIo *io, uint64_t *bytes, TtDiag *diag);
    /* reads up to @len; *@got < @len only at the end of the file */
    TtStatus (*read_at)(TtIo *io, uint64_t offset, void *buf, size_t len,
                        size_t *got, TtDiag *diag);
    /* writes all or fails; after a failure the tail of the file is undefined */
    TtStatus (*append)(TtIo *io, const void *buf, size_t len, TtDiag *diag);
    /* after a failure it fails ever after: what was written before may be lost */
    TtStatus (*sync)(TtIo *io, TtDiag *diag);
    void (*close)(TtIo *io);
    /* Those below may be NULL: then the object cannot do it. */
    /* cuts what lies after @bytes, such as a failed append's tail */
    TtStatus (*truncate)(TtIo *io, uint64_t bytes, TtDiag *diag);
    /* writes over what is there, or after it (a gap reads as zeros); all or fails:
     * then that range is undefined */
    TtStatus (*write_at)(TtIo *io, uint64_t offset, const void *buf, size_t len,
                         TtDiag *diag);
    /* gives the space of a range back; it reads as zeros from now on. The
     * size stays. TT_ERR_INVALID: not here, and nothing changed. */
    TtStatus (*punch)(TtIo *io, uint64_t offset, uint64_t len, TtDiag *diag);
    /* Replacing the whole content, all or nothing: begin makes an empty object
     * to append to; commit lets @io stand for it, and closes @fresh in any
     * case. After a failure @io is what it was. To give up, close @fresh. */
    TtStatus (*replace_begin)(TtIo *io, TtIo **fresh, TtDiag *diag);
    TtStatus (*replace_commit)(TtIo *io, TtIo *fresh, TtDiag *diag);
} TtIoOps;

struct TtIo {
    const TtIoOps *ops;
};

/* Opens for reading. ENOENT and the like come back as TT_ERR_IO + sentence. */
TtStatus tt_io_posix_open(const char *path, TtIo **out, TtDiag *diag);
/* Creates a new file for appending (O_EXCL, 0600); never overwrites. */
TtStatus tt_io_posix_create(const char *path, TtIo **out, TtDiag *diag);
/*
 * A new file that is not to be seen under @path before tt_io_posix_name, and that is
 * gone when it is closed without, or when the process is killed (unless the file
 * system knows no files without a name: then only when it is closed). @path must not
 * exist, now and when it is named.
 */
TtStatus tt_io_posix_create_unnamed(const char *path, TtIo **out, TtDiag *diag);
TtStatus tt_io_posix_name(TtIo *unnamed, TtDiag *diag);
/* The same file once more, to read what was appended. */
TtStatus tt_io_posix_dup(TtIo *io, TtIo **out, TtDiag *diag);
/* Opens an existing file for reading and appending; not through a symbolic link. */
TtStatus tt_io_posix_open_append(const char *path, TtIo **out, TtDiag *diag);
/* @path from the root on, without "." and ".." and slashes at its end; ".." leads where
 * the kernel goes (through symbolic links). The part after the last ".." need not exist.
 * g_free. NULL, errno: it cannot be found out. */
char *tt_io_posix_absolute(const char *path);
/* So that a power cut does not undo the making or renaming of @path. Failures are
 * ignored: some file systems cannot. */
void tt_io_posix_sync_directory_of(const char *path);
/* Memory: @bytes are copied. All operations work. */
TtIo *tt_io_mem_new(const void *bytes, size_t len);
const uint8_t *tt_io_mem_data(TtIo *io, size_t *len);
/* Wraps @base (owned): operation number @nth from now on fails with @status
 * (writes may be cut in the middle); 0 never fails. Counts all operations. */
TtIo *tt_io_fault_new(TtIo *base, uint64_t nth, TtStatus status);
uint64_t tt_io_fault_count(TtIo *io);
/*
 * Wraps @base (owned): an append that fails, for want of space or otherwise, asks
 * @make_room, in the same thread, and is tried again as often as that says so.
 * To append, read, sync and close only.
 */
typedef bool (*TtIoMakeRoom)(void *opaque, const TtDiag *why);
TtIo *tt_io_patient_new(TtIo *base, TtIoMakeRoom make_room, void *opaque);

static inline void tt_io_close(TtIo *io)
{
    if (io) {
        io->ops->close(io);
    }
}

#endif
