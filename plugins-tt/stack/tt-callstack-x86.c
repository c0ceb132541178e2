/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Call stacks: the instructions of x86 that change them, and jumps. See tt-callstack.h. */
#include "plugins-tt/stack/tt-callstack.h"

static bool is_legacy_prefix(uint8_t b)
{
    return b == 0x66 || b == 0x67 || b == 0xf0 || b == 0xf2 || b == 0xf3 ||
        (b & 0xe7) == 0x26 || (b & 0xfc) == 0x64;
}

/* In 32-bit code 0x40 to 0x4f are whole instructions (inc, dec), not prefixes: then they
 * are the last byte. */
static size_t opcode_at(const uint8_t *b, size_t n)
{
    size_t i = 0;

    while (i + 1 < n && is_legacy_prefix(b[i])) {
        i++;
    }
    return i + 1 < n && (b[i] & 0xf0) == 0x40 ? i + 1 : i;
}

static TtCallKind kind_of_group5(uint8_t modrm)
{
    switch (modrm >> 3 & 7) {
    case 2: case 3:
        return TT_CALL_CALL;
    case 4: case 5:
        return TT_CALL_JUMP;
    default:
        return TT_CALL_NEXT;
    }
}

static TtCallKind kind_of_two_bytes(uint8_t b, uint8_t third)
{
    if ((b & 0xf0) == 0x80) {
        return TT_CALL_JUMP;
    }
    if (b == 0xaa) {
        return TT_CALL_RESUME;                          /* rsm */
    }
    if (b == 0x01 && third == 0xd8) {
        return TT_CALL_GUEST;                           /* vmrun */
    }
    return b == 0x05 || b == 0x34 ? TT_CALL_ENTER :     /* syscall, sysenter */
        b == 0x07 || b == 0x35 ? TT_CALL_LEAVE : TT_CALL_NEXT;
}

TtCallKind tt_callstack_x86_kind(const uint8_t *bytes, size_t n, uint32_t *pops)
{
    size_t at = opcode_at(bytes, n);
    uint8_t first = at < n ? bytes[at] : 0x90;
    uint8_t second = at + 1 < n ? bytes[at + 1] : 0;
    uint8_t third = at + 2 < n ? bytes[at + 2] : 0;

    *pops = 0;
    if ((first & 0xf0) == 0x70 || (first & 0xfc) == 0xe0) {
        return TT_CALL_JUMP;
    }
    switch (first) {
    case 0xe8: case 0x9a:
        return TT_CALL_CALL;
    case 0xc2: case 0xca:
        *pops = second | third << 8;
        return TT_CALL_RETURN;
    case 0xc3: case 0xcb:
        return TT_CALL_RETURN;
    case 0xe9: case 0xea: case 0xeb:
        return TT_CALL_JUMP;
    case 0xcc: case 0xcd: case 0xf1:                    /* into (ceh) is a fault or nothing */
        return TT_CALL_ENTER;
    case 0xcf:
        return TT_CALL_LEAVE;
    case 0x0f:
        return kind_of_two_bytes(second, third);
    case 0xff:
        return kind_of_group5(second);
    default:
        return TT_CALL_NEXT;
    }
}
