/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the race finder knows of x86: atomic instructions, interrupts between vCPUs. */
#include "plugins-tt/race/tt-race.h"

#include <string.h>

/* ---- instructions ---- */

#define LOCK        0xf0
#define XCHG_BYTE   0x86
#define XCHG        0x87

static bool is_prefix(uint8_t byte)
{
    static const uint8_t all[] = {
        LOCK, 0xf2, 0xf3, 0x26, 0x2e, 0x36, 0x3e, 0x64, 0x65, 0x66, 0x67,
    };

    return memchr(all, byte, sizeof(all));
}

bool tt_race_x86_is_atomic(const uint8_t *bytes, size_t len)
{
    size_t i = 0;

    for (; i < len && is_prefix(bytes[i]); i++) {
        if (bytes[i] == LOCK) {
            return true;
        }
    }
    /* REX; in 32-bit code these are instructions without a second byte. */
    if (i + 1 < len && bytes[i] >> 4 == 4) {
        i++;
    }
    return i + 1 < len && (bytes[i] == XCHG || bytes[i] == XCHG_BYTE) &&
        bytes[i + 1] >> 6 != 3;         /* two registers */
}

/* ---- the local APIC (Intel SDM volume 3, 11.6) ---- */

enum { NO_SHORTHAND, SELF, ALL, OTHERS };

#define IS_LOGICAL          (1u << 11)
#define EVERYBODY           0xffu       /* of 8 bits */
#define EVERYBODY_X2APIC    0xffffffffu
#define CLUSTER(high)       ((high) >> 16)

/* Logical destinations: one bit for each vCPU, if the guest has set up what Linux and
 * others set up for up to eight of them. */
static uint32_t logical(uint32_t destination, bool is_x2apic, uint32_t others)
{
    if (is_x2apic) {
        return CLUSTER(destination) ? others : destination & 0xffff;
    }
    return destination;
}

uint32_t tt_race_x86_targets(unsigned vcpu, unsigned n_vcpus, uint32_t low, uint32_t high,
                             bool is_x2apic)
{
    uint32_t all = (1u << n_vcpus) - 1, self = 1u << vcpu, others = all & ~self;
    uint32_t destination = is_x2apic ? high : high >> 24, to;

    switch (low >> 18 & 3) {
    case SELF:
        return self;
    case ALL:
        return all;
    case OTHERS:
        return others;
    case NO_SHORTHAND:
    default:
        break;
    }
    if (destination == (is_x2apic ? EVERYBODY_X2APIC : EVERYBODY)) {
        return all;
    }
    to = low & IS_LOGICAL ? logical(destination, is_x2apic, others) :
        destination < n_vcpus ? 1u << destination : 0;
    to &= all;
    return to ? to : others;
}
