/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Status names and the one way to fill a diagnostic.
 */
#include "io/tt-base.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

unsigned tt_control_bytes(const char *at)
{
    const unsigned char *p = (const unsigned char *)at;

    if (p[0] == 0xc2 && (p[1] & 0xe0) == 0x80) {        /* U+0080 to U+009F */
        return 2;
    }
    return (p[0] && p[0] < 0x20) || p[0] == 0x7f;
}

bool tt_has_control(const char *text)
{
    while (*text && !tt_control_bytes(text)) {
        text++;
    }
    return *text;
}

/* Of the character of UTF-8 that begins at @p, or what looks like one; 0: none does. */
static unsigned utf8_bytes(const unsigned char *p)
{
    unsigned n = p[0] < 0x80 ? 1 : p[0] < 0xc2 ? 0 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 :
                 p[0] < 0xf5 ? 4 : 0;

    for (unsigned i = 1; i < n; i++) {
        if ((p[i] & 0xc0) != 0x80) {
            return 0;
        }
    }
    return n;
}

/* To a terminal without UTF-8 a single byte of 0x80 to 0x9f is a control, too. */
char *tt_replace_controls(char *text, char by)
{
    unsigned n;

    for (char *p = text; *p; p += n) {
        n = tt_control_bytes(p);
        if (n) {
            memset(p, by, n);
            continue;
        }
        n = utf8_bytes((const unsigned char *)p);
        if (!n) {
            *p = (*p & 0xe0) == 0x80 ? by : *p;
            n = 1;
        }
    }
    return text;
}

TtStatus tt_fail(TtDiag *diag, TtStatus status, const char *fmt, ...)
{
    va_list ap;

    if (!diag) {
        return status;
    }
    /* Formatted aside: an argument may point into @diag itself. */
    TtDiag d = { .status = status };
    va_start(ap, fmt);
    vsnprintf(d.text, sizeof(d.text), fmt, ap);
    va_end(ap);
    tt_replace_controls(d.text, ' ');
    *diag = d;
    return status;
}

const char *tt_status_name(TtStatus status)
{
    switch (status) {
    case TT_OK:
        return "no error";
    case TT_END:
        return "the end";
    case TT_END_TORN:
        return "the end, where the writer was cut off";
    case TT_ERR_IO:
        return "input or output failed";
    case TT_ERR_FORMAT:
        return "damaged or foreign data";
    case TT_ERR_VERSION:
        return "made by a newer version";
    case TT_ERR_LIMIT:
        return "larger than allowed";
    case TT_ERR_NOMEM:
        return "not enough memory";
    case TT_ERR_NOSPACE:
        return "no space left";
    case TT_ERR_MISMATCH:
        return "the replay differs from the recording";
    case TT_ERR_INVALID:
        return "not possible here";
    }
    return "unknown status";
}
