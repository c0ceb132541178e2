/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What writer and reader of the log share, and the names of its kinds and fields.
 */
#include "tt-log-format.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static_assert(TT_F_HEAD_SUM + 8 == TT_F_HEAD_BYTES, "head layout");
static_assert(TT_F_SEG_SUM + 8 == TT_F_SEG_BYTES, "segment header layout");
static_assert(TT_F_HEAD_PART_BYTES <= TT_F_SEG_BYTES,
              "what is shorter than a segment header is a cut tail (R7 b)");
static_assert((TT_F_SEG_FLAGS_KNOWN & ~TT_F_SEG_FLAGS_MUST_KNOW) == 0,
              "every flag known today must be known");
static_assert(TT_EV_KIND_MAX == TT_F_EV_KIND, "kinds fill their six bits");

uint64_t tt_log_seed(const uint8_t uuid[16])
{
    return tt_get_le64(uuid);
}

uint32_t tt_log_told(uint8_t out[TT_F_TOLD_MAX], const uint8_t *in, uint64_t seq)
{
    uint8_t *end;

    memcpy(out, in, TT_F_TOLD_BYTES);
    end = tt_put_varint(out + TT_F_TOLD_BYTES, seq);
    *end++ = 0;
    return end - out;
}

/* ---- for people ---- */

/* Names of the fields of a kind; NULL: shown only when not zero. */
typedef struct KindText {
    const char *name;
    const char *addr, *val, *aux;
    bool text;                  /* data is text */
} KindText;

static const KindText kind_text[TT_EV_KIND_MAX + 1] = {
    [TT_EV_PIO_IN] = { "pio-in", "port", "val", NULL },
    [TT_EV_PIO_OUT] = { "pio-out", "port", "val", NULL },
    [TT_EV_MMIO_LD] = { "mmio-ld", "addr", "val", NULL },
    [TT_EV_MMIO_ST] = { "mmio-st", "addr", "val", NULL },
    [TT_EV_TSC] = { "tsc", NULL, "val", NULL },
    [TT_EV_MSR_RD] = { "msr-rd", "index", "val", NULL },
    [TT_EV_MSR_WR] = { "msr-wr", "index", "val", NULL },
    [TT_EV_CR8_RD] = { "cr8-rd", NULL, "val", NULL },
    [TT_EV_RAND] = { "rand", NULL, "val", "carry" },
    [TT_EV_CPUID] = { "cpuid", "leaf", NULL, NULL },
    [TT_EV_VALUE] = { "value", "site", "val", NULL },
    [TT_EV_HLT] = { "hlt", NULL, "shutdown", NULL },
    [TT_EV_TPR_WR] = { "tpr-wr", NULL, "val", NULL },
    [TT_EV_INTR] = { "intr", "class", "vector", NULL },
    [TT_EV_UNHALT] = { "unhalt", NULL, NULL, NULL },
    [TT_EV_RAM] = { "ram", "block", "offset", NULL },
    [TT_EV_MAP] = { "map", "space", NULL, NULL },
    [TT_EV_CPU_FLAG] = { "cpu-flag", "flag", "val", NULL },
    [TT_EV_CPU_STATE] = { "cpu-state", NULL, "halted", NULL },
    [TT_EV_BLOCK] = { "block", "block", "bytes", "flags", .text = true },
    [TT_EV_CPU_SWITCH] = { "cpu-switch", "cpu", NULL, NULL },
    [TT_EV_RAM_FILL] = { "ram-fill", "block", "offset", "byte" },
    [TT_EV_LANDMARK] = { "landmark", NULL, NULL, NULL },
    [TT_EV_LANDMARK_PAGES] = { "landmark-pages", NULL, NULL, NULL },
    [TT_EV_BRANCHES] = { "branches", NULL, "count", NULL },
    [TT_EV_WINDOW] = { "window", NULL, NULL, NULL },
    [TT_EV_CPUID_TABLE] = { "cpuid-table", NULL, NULL, NULL },
    [TT_EV_DISK] = { "disk", "block", "offset", "bytes" },
    [TT_EV_PAYLOAD] = { "payload", "block", "offset", "bytes" },
    [TT_EV_CHECK] = { "check", "outputs", "cpu", NULL },
    [TT_EV_DIGEST] = { "digest", "cpu", "ram", NULL },
    [TT_EV_MARK] = { "mark", NULL, NULL, NULL, .text = true },
    [TT_EV_NOTE] = { "note", NULL, NULL, NULL, .text = true },
    [TT_EV_FINISH] = { "finish", NULL, "how", NULL },
    [TT_EV_SCREEN] = { "screen", "what", "picture", "at" },
    [TT_EV_FRAME] = { "frame", "what", "seq", "bytes" },
    [TT_EV_TIME] = { "time", "host_ns", "tsc", NULL },
    [TT_EV_FRAME_OUT] = { "frame-out", NULL, "seq", "bytes" },
    [TT_EV_FRAME_IN] = { "frame-in", "sent_at", "seq", "bytes" },
};

const char *tt_event_kind_name(unsigned kind)
{
    return kind <= TT_EV_KIND_MAX ? kind_text[kind].name : NULL;
}

/* Appends to @buf at *@at like snprintf; *@at counts what did not fit, too. */
static void __attribute__((format(printf, 4, 5)))
add(char *buf, size_t size, size_t *at, const char *fmt, ...)
{
    va_list ap;
    size_t left = *at < size ? size - *at : 0;

    va_start(ap, fmt);
    int n = vsnprintf(left ? buf + *at : NULL, left, fmt, ap);
    va_end(ap);
    *at += n > 0 ? n : 0;
}

#define SHOWN_DATA_MAX 64       /* text; half of it in hex */

static void add_data(char *buf, size_t size, size_t *at, const TtEvent *ev,
                     bool text)
{
    uint32_t max = text ? SHOWN_DATA_MAX : SHOWN_DATA_MAX / 4;
    uint32_t shown = ev->len < max ? ev->len : max;

    add(buf, size, at, " len=%" PRIu32 " %s", ev->len, text ? "\"" : "");
    for (uint32_t i = 0; i < shown; i++) {
        uint8_t c = ev->data[i];
        if (!text) {
            add(buf, size, at, "%02x", c);
        } else if (c < 0x20 || c >= 0x7f || c == '"' || c == '\\') {
            add(buf, size, at, "\\x%02x", c);
        } else {
            add(buf, size, at, "%c", c);
        }
    }
    add(buf, size, at, "%s%s", text ? "\"" : "", shown < ev->len ? "..." : "");
}

static void add_field(char *buf, size_t size, size_t *at, const char *name,
                      const char *fallback, uint64_t v)
{
    if (name || v) {
        add(buf, size, at, " %s=0x%" PRIx64, name ? name : fallback, v);
    }
}

int tt_event_format(const TtEvent *ev, char *buf, size_t size)
{
    static const KindText none;
    const KindText *k = ev->kind <= TT_EV_KIND_MAX ? &kind_text[ev->kind]
                                                   : &none;
    size_t at = 0;

    if (size) {
        buf[0] = 0;
    }
    add(buf, size, &at, "%12" PRIu64 " ", ev->pos);
    if (k->name) {
        add(buf, size, &at, "%s", k->name);
    } else {
        add(buf, size, &at, "(unknown kind %u)", ev->kind);
    }
    if (ev->nested) {
        add(buf, size, &at, " nested");
    }
    if (ev->cpu) {
        add(buf, size, &at, " vcpu=%u", ev->cpu);
    }
    add_field(buf, size, &at, k->addr, "addr", ev->addr);
    if (ev->size) {
        add(buf, size, &at, " size=%u", ev->size);
    }
    add_field(buf, size, &at, k->val, "val", ev->val);
    add_field(buf, size, &at, k->aux, "status", ev->aux);
    if (ev->len) {
        add_data(buf, size, &at, ev, k->text);
    }
    return at;
}
