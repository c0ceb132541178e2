/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Shared by every core: status codes, diagnostics without allocation, bounds, and
 * little-endian byte access.
 *
 * Context: any thread; nothing here has state. Internal API.
 */
#ifndef TT_BASE_H
#define TT_BASE_H

/* In QEMU's build nobody sees the warnings of our files: these are never harmless. */
#pragma GCC diagnostic error "-Wimplicit-function-declaration"
#pragma GCC diagnostic error "-Wint-conversion"
#pragma GCC diagnostic error "-Wincompatible-pointer-types"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef NDEBUG
#error "asserts are part of the contract: do not build with NDEBUG"
#endif

/* Of TTVM: manifests name it, and tt --version. */
#define TT_TTVM_VERSION "1"

/*
 * Every core function that can fail returns one of these. Codes are stable
 * within a release only; they never reach a file.
 */
typedef enum TtStatus {
    TT_OK = 0,
    TT_END = 1,             /* nothing more, and that is how it should be */
    TT_END_TORN = 2,        /* nothing more: the writer was cut off here */
    TT_ERR_IO = -1,         /* the operating system refused (diag: errno) */
    TT_ERR_FORMAT = -2,     /* bytes that no writer of ours makes */
    TT_ERR_VERSION = -3,    /* made by a newer writer: a must-know bit is set */
    TT_ERR_LIMIT = -4,      /* a length is above its named limit */
    TT_ERR_NOMEM = -5,      /* a large allocation failed */
    TT_ERR_NOSPACE = -6,    /* the disk, or the cap the user gave, is full */
    TT_ERR_MISMATCH = -7,   /* replay saw something else than was recorded */
    TT_ERR_INVALID = -8,    /* the caller's argument makes no sense here */
} TtStatus;

#define TT_DIAG_TEXT_MAX 240

/*
 * Says where and what after a failure; filled by the callee, owned by the
 * caller, fixed size so that the way out of an error never allocates.
 */
typedef struct TtDiag {
    TtStatus status;
    int os_errno;               /* 0 when the operating system had no part */
    uint64_t offset;            /* byte in the file, or 0 */
    uint64_t position;          /* position in the run, or 0 */
    char text[TT_DIAG_TEXT_MAX];/* one sentence, no newline */
} TtDiag;

/*
 * tt_fail: fill @diag (may be NULL) with a formatted sentence
 * Returns @status, so that a function can end with `return tt_fail(...)`.
 */
TtStatus tt_fail(TtDiag *diag, TtStatus status, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* A run may come from anybody, and its text must not drive a terminal. Of how many
 * bytes is the control character, of ASCII or Unicode, @at; 0: it is none. */
unsigned tt_control_bytes(const char *at);
bool tt_has_control(const char *text);
/* They become @by, each byte of them. In place; @text. */
char *tt_replace_controls(char *text, char by);

/* Prose for a code, static string, never NULL. */
const char *tt_status_name(TtStatus status);

static inline void tt_put_le16(uint8_t *p, uint16_t v)
{
    p[0] = v; p[1] = v >> 8;
}

static inline void tt_put_le32(uint8_t *p, uint32_t v)
{
    tt_put_le16(p, v); tt_put_le16(p + 2, v >> 16);
}

static inline void tt_put_le64(uint8_t *p, uint64_t v)
{
    tt_put_le32(p, v); tt_put_le32(p + 4, v >> 32);
}

static inline uint16_t tt_get_le16(const uint8_t *p)
{
    return p[0] | (uint16_t)p[1] << 8;
}

static inline uint32_t tt_get_le32(const uint8_t *p)
{
    return tt_get_le16(p) | (uint32_t)tt_get_le16(p + 2) << 16;
}

static inline uint64_t tt_get_le64(const uint8_t *p)
{
    return tt_get_le32(p) | (uint64_t)tt_get_le32(p + 4) << 32;
}

#endif
