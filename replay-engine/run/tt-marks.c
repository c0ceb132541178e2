/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The file RUN/marks, read and added to.
 */
#include "run/tt-marks.h"

#include <glib.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

/* As C writes them: 10, 0x10, 010. One that is too large is no number. */
static bool is_number(const char *name)
{
    char *end;

    errno = 0;
    (void)g_ascii_strtoull(name, &end, 0);
    return end != name && !*end && !errno;
}

TtMarkName tt_mark_name_check(const char *name)
{
    size_t n = strspn(name, G_CSET_A_2_Z G_CSET_a_2_z G_CSET_DIGITS "-_.");

    if (!n || n > TT_MARK_NAME_MAX || name[n] || *name == '-') {
        return TT_MARK_NAME_BAD;
    }
    return !strcmp(name, "start") || !strcmp(name, "end") || is_number(name) ?
        TT_MARK_NAME_TAKEN : TT_MARK_NAME_FIT;
}

/* One line without its newline. False: it makes no sense. */
static bool take_line(const char *line, size_t len, TtMarkFound *found,
                      void *opaque)
{
    char name[TT_MARK_NAME_BYTES_MAX + 1];
    uint64_t pos = 0;
    size_t i;

    for (i = 0; i < len && g_ascii_isdigit(line[i]); i++) {
        unsigned digit = line[i] - '0';

        if (pos > (INT64_MAX - digit) / 10) {
            return false;
        }
        pos = pos * 10 + digit;
    }
    if (!i || i == len || line[i] != ' ') {
        return false;
    }
    i++;
    if (i == len || len - i > TT_MARK_NAME_BYTES_MAX ||
        memchr(line + i, 0, len - i)) {
        return false;
    }
    memcpy(name, line + i, len - i);
    name[len - i] = 0;
    if (found) {
        found(opaque, name, pos);
    }
    return true;
}

unsigned tt_marks_parse(const char *text, size_t len, TtMarkFound *found,
                        void *opaque)
{
    unsigned number = 0, bad = 0;

    while (len) {
        const char *end = memchr(text, '\n', len);
        size_t n = end ? end - text : len;

        number++;
        if (!bad && !end) {
            bad = number;
        }
        if (end && n && !take_line(text, n, found, opaque) && !bad) {
            bad = number;
        }
        text += MIN(n + 1, len);
        len -= MIN(n + 1, len);
    }
    return bad;
}

/* NULL: *status says why. */
static char *read_all(TtIo *io, size_t *len, TtStatus *status, TtDiag *diag)
{
    uint64_t bytes;
    char *text;

    *status = io->ops->size(io, &bytes, diag);
    if (*status != TT_OK) {
        return NULL;
    }
    if (bytes > TT_MARKS_BYTES_MAX) {
        *status = tt_fail(diag, TT_ERR_LIMIT, "the file of marks has %" PRIu64
                          " bytes, which is too many: delete some lines", bytes);
        return NULL;
    }
    text = g_malloc(bytes + 1);
    *status = io->ops->read_at(io, 0, text, bytes, len, diag);
    if (*status != TT_OK) {
        g_free(text);
        return NULL;
    }
    return text;
}

TtStatus tt_marks_load(TtIo *io, TtMarkFound *found, void *opaque,
                       unsigned *bad, TtDiag *diag)
{
    TtStatus status;
    size_t len;
    g_autofree char *text = read_all(io, &len, &status, diag);
    unsigned first = text ? tt_marks_parse(text, len, found, opaque) : 0;

    if (bad) {
        *bad = first;
    }
    return status;
}

/* Cuts what is not a whole line. */
static TtStatus trim(TtIo *io, uint64_t *bytes, TtDiag *diag)
{
    TtStatus status;
    size_t len, whole;
    g_autofree char *text = read_all(io, &len, &status, diag);

    if (!text) {
        return status;
    }
    for (whole = len; whole && text[whole - 1] != '\n'; whole--) {
    }
    *bytes = whole;
    return whole < len ? io->ops->truncate(io, whole, diag) : TT_OK;
}

TtStatus tt_marks_append(TtIo *io, const char *name, uint64_t pos,
                         TtDiag *diag)
{
    g_autofree char *line = g_strdup_printf("%" PRIu64 " %s\n", pos, name);
    size_t len = strlen(line);
    uint64_t bytes = 0;
    TtStatus status;

    g_assert(*name && strlen(name) <= TT_MARK_NAME_BYTES_MAX &&
             !strchr(name, '\n') && pos <= INT64_MAX);
    status = trim(io, &bytes, diag);
    if (status == TT_OK && bytes + len > TT_MARKS_BYTES_MAX) {
        status = tt_fail(diag, TT_ERR_LIMIT, "the file of marks is full: delete "
                         "some lines");
    }
    if (status != TT_OK) {
        return status;
    }
    status = io->ops->append(io, line, len, diag);
    if (status == TT_OK) {
        status = io->ops->sync(io, diag);
    }
    if (status != TT_OK) {
        TtDiag ignored;

        (void)io->ops->truncate(io, bytes, &ignored);
    }
    return status;
}
