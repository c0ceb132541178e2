/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The parts of CPUX86State for an undo log: see tt-x86-undo.h. */
#include "qemu/osdep.h"
#include "accel-tt/x86/tt-x86-undo.h"
#include "hw/core/cpu.h"
#include "cpu.h"

#define AT(field)   offsetof(CPUX86State, field)
#define UP_TO(from, to, fixed) \
    { AT(from), (AT(to) - AT(from) + 7) & ~(size_t)7, fixed }

/* Left out: what TCG never changes (xtiledata, Hyper-V's registers, last branches), and
 * what is KVM's or vmstate's. */
static const TtX86Part parts[] = {
    UP_TO(regs, xtilecfg, false),
    UP_TO(sysenter_cs, msr_hv_hypercall, false),
    UP_TO(msr_hwcr, dr, false),
    UP_TO(dr, old_exception, true),
    UP_TO(old_exception, cpuid_level_func7, false),
    UP_TO(features, avx10_version, true),
    UP_TO(mtrr_fixed, mp_state, false),
    UP_TO(mcg_cap, fpus_vmstate, false),
    UP_TO(xss, topo_info, false),
};

const TtX86Part *tt_x86_parts(unsigned *n)
{
    QEMU_BUILD_BUG_ON(AT(regs) % 8 || AT(sysenter_cs) % 8 || AT(msr_hwcr) % 8 || AT(dr) % 8 ||
                      AT(old_exception) % 8 || AT(features) % 8 ||
                      AT(mtrr_fixed) % 8 || AT(mcg_cap) % 8 || AT(xss) % 8);
    *n = ARRAY_SIZE(parts);
    return parts;
}
