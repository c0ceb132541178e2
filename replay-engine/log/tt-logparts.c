/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The files of a log, shown as one.
 *
 * I1: part i of a PartsIo holds the bytes from start[i] up to start[i + 1] of the
 *     whole, as long as they were when it was opened (the newest may grow since).
 */
#include "log/tt-logparts.h"

#include <errno.h>
#include <glib.h>
#include <stdlib.h>

#define NAME "log."
#define DIGITS 6

typedef struct PartsIo {
    TtIo io;
    unsigned n;
    TtIo **part;
    uint64_t *start;            /* n + 1 of them; the last is the size */
} PartsIo;

/* ---- names ---- */

char *tt_logparts_path(const char *dir, uint32_t number)
{
    char name[24];

    if (!number) {
        return g_build_filename(dir, "log", NULL);
    }
    g_snprintf(name, sizeof(name), NAME "%0*u", DIGITS, number);
    return g_build_filename(dir, name, NULL);
}

/* 0: it is no part's. */
static uint32_t number_of(const char *name)
{
    const char *digits = name + strlen(NAME);
    uint64_t v = 0;
    char *end;

    if (!g_str_has_prefix(name, NAME) || !g_ascii_isdigit(*digits) ||
        strlen(digits) < DIGITS || strlen(digits) > 10) {
        return 0;
    }
    v = g_ascii_strtoull(digits, &end, 10);
    if (*end || v > UINT32_MAX || (*digits == '0' && strlen(digits) > DIGITS)) {
        return 0;
    }
    return v;
}

static int compare(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return (x > y) - (x < y);
}

/* All, ascending. NULL: errno says why they cannot be listed. */
static GArray *list_all(const char *dir)
{
    GArray *all;
    GDir *d;
    const char *name;

    errno = 0;
    d = g_dir_open(dir, 0, NULL);
    if (!d) {
        return NULL;
    }
    all = g_array_new(false, false, sizeof(uint32_t));
    while ((name = g_dir_read_name(d))) {
        uint32_t v = number_of(name);

        if (v) {
            g_array_append_val(all, v);
        }
    }
    g_dir_close(d);
    g_array_sort(all, compare);
    return all;
}

/* Index of the oldest of those that follow one another up to the newest. */
static unsigned first_of(const GArray *all)
{
    const uint32_t *number = (const uint32_t *)all->data;
    unsigned from = all->len;

    while (from > 1 && number[from - 2] + 1 == number[from - 1]) {
        from--;
    }
    return from ? from - 1 : 0;
}

uint32_t *tt_logparts_list(const char *dir, unsigned *n)
{
    g_autoptr(GArray) all = list_all(dir);
    unsigned from = all ? first_of(all) : 0;

    *n = all ? all->len - from : 0;
    return *n ? g_memdup2(&g_array_index(all, uint32_t, from),
                          *n * sizeof(uint32_t)) : NULL;
}

bool tt_logparts_gap(const char *dir, uint32_t *oldest, uint32_t *before,
                     uint32_t *behind)
{
    g_autoptr(GArray) all = list_all(dir);
    unsigned from = all ? first_of(all) : 0;

    if (from) {
        *oldest = g_array_index(all, uint32_t, 0);
        *before = g_array_index(all, uint32_t, from - 1);
        *behind = g_array_index(all, uint32_t, from);
    }
    return from;
}

/* ---- one after another ---- */

static PartsIo *parts_io(TtIo *io)
{
    return (PartsIo *)((char *)io - offsetof(PartsIo, io));
}

static TtStatus parts_size(TtIo *io, uint64_t *bytes, TtDiag *diag)
{
    PartsIo *p = parts_io(io);

    *bytes = p->start[p->n];
    return TT_OK;
}

/* The part that holds byte @offset, which lies in the whole. */
static unsigned find_part(const PartsIo *p, uint64_t offset)
{
    unsigned low = 0, high = p->n;

    while (high - low > 1) {
        unsigned mid = low + (high - low) / 2;

        if (p->start[mid] <= offset) {
            low = mid;
        } else {
            high = mid;
        }
    }
    return low;
}

static TtStatus parts_read_at(TtIo *io, uint64_t offset, void *buf, size_t len,
                              size_t *got, TtDiag *diag)
{
    PartsIo *p = parts_io(io);
    uint8_t *to = buf;

    *got = 0;
    while (len && offset < p->start[p->n]) {
        unsigned i = find_part(p, offset);
        size_t want = MIN(len, p->start[i + 1] - offset), n;
        TtStatus st = p->part[i]->ops->read_at(p->part[i], offset - p->start[i],
                                               to, want, &n, diag);

        if (st != TT_OK) {
            return st;
        }
        *got += n;
        if (n < want) {
            break;                      /* it became shorter */
        }
        to += n;
        offset += n;
        len -= n;
    }
    return TT_OK;
}

static void parts_close(TtIo *io)
{
    PartsIo *p = parts_io(io);

    for (unsigned i = 0; i < p->n; i++) {
        tt_io_close(p->part[i]);
    }
    g_free(p->part);
    g_free(p->start);
    g_free(p);
}

static TtStatus refuse_write(TtDiag *diag)
{
    return tt_fail(diag, TT_ERR_INVALID, "this log is open only for reading");
}

static TtStatus parts_append(TtIo *io, const void *buf, size_t len,
                             TtDiag *diag)
{
    return refuse_write(diag);
}

static TtStatus parts_sync(TtIo *io, TtDiag *diag)
{
    return refuse_write(diag);
}

static const TtIoOps parts_ops = {
    .size = parts_size,
    .read_at = parts_read_at,
    .append = parts_append,
    .sync = parts_sync,
    .close = parts_close,
};

/* Newest first: one that is gone by now ends it. */
static TtStatus open_parts(PartsIo *p, const char *dir, const uint32_t *number,
                           unsigned n, TtDiag *diag)
{
    TtStatus st = TT_OK;
    TtDiag why = { 0 };
    unsigned have = 0;

    p->part = g_new0(TtIo *, n);
    while (have < n && st == TT_OK) {
        g_autofree char *path = tt_logparts_path(dir, number[n - 1 - have]);

        st = tt_io_posix_open(path, &p->part[n - 1 - have], &why);
        have += st == TT_OK;
    }
    memmove(p->part, p->part + n - have, have * sizeof(*p->part));
    p->n = have;
    if (st != TT_OK && (!have || why.os_errno != ENOENT)) {
        if (diag) {
            *diag = why;
        }
        return st;
    }
    return TT_OK;
}

static TtStatus measure(PartsIo *p, TtDiag *diag)
{
    TtStatus st = TT_OK;

    p->start = g_new0(uint64_t, p->n + 1);
    for (unsigned i = 0; i < p->n && st == TT_OK; i++) {
        uint64_t bytes = 0;

        st = p->part[i]->ops->size(p->part[i], &bytes, diag);
        if (st == TT_OK && bytes > INT64_MAX - p->start[i]) {
            st = tt_fail(diag, TT_ERR_LIMIT, "the log is too long");
        }
        if (st == TT_OK && !bytes && i + 1 < p->n) {
            st = tt_fail(diag, TT_ERR_FORMAT, "a part of the log is empty, and "
                         "others follow: what was recorded before them is lost");
        }
        p->start[i + 1] = p->start[i] + bytes;
    }
    return st;
}

/* Or, if it is not there, why nothing is: are there parts, and we may not see? */
static TtStatus open_whole(const char *dir, const char *whole, TtIo **out,
                           TtDiag *diag)
{
    TtDiag why = { 0 };
    TtStatus st = tt_io_posix_open(whole, out, &why);
    g_autoptr(GArray) all = NULL;

    if (st != TT_OK && why.os_errno == ENOENT) {
        all = list_all(dir);
        if (!all && errno) {
            int err = errno;

            st = tt_fail(&why, TT_ERR_IO, "cannot list the directory '%s', so "
                         "the parts of its log cannot be found: %s", dir,
                         g_strerror(err));
            why.os_errno = err;
        }
    }
    if (st != TT_OK && diag) {
        *diag = why;
    }
    return st;
}

TtStatus tt_logparts_open(const char *dir, TtIo **out, TtDiag *diag)
{
    g_autofree char *whole = tt_logparts_path(dir, 0);
    g_autofree uint32_t *number = NULL;
    unsigned n;
    PartsIo *p;
    TtStatus st;

    *out = NULL;
    number = tt_logparts_list(dir, &n);
    if (!number) {
        return open_whole(dir, whole, out, diag);
    }
    if (g_file_test(whole, G_FILE_TEST_EXISTS)) {
        return tt_fail(diag, TT_ERR_FORMAT, "'%s' has both a 'log' and parts of "
                       "a log (log.%0*u): remove the files that do not belong to "
                       "this run", dir, DIGITS, number[0]);
    }
    if (n > TT_LOGPARTS_MAX) {
        return tt_fail(diag, TT_ERR_LIMIT, "the log in '%s' has too many parts, "
                       "%u", dir, n);
    }
    p = g_new0(PartsIo, 1);
    p->io.ops = &parts_ops;
    st = open_parts(p, dir, number, n, diag);
    if (st == TT_OK) {
        st = measure(p, diag);
    }
    if (st != TT_OK) {
        parts_close(&p->io);
        return st;
    }
    *out = &p->io;
    return TT_OK;
}
