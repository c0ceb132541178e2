/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A host that has no KVM for x86 guests. */
#include "qemu/osdep.h"
#include "accel-tt/kvm/tt-kvm.h"
#include "qapi/error.h"

void tt_kvm_configure(void)
{
}

bool tt_kvm_check(MachineState *ms, Error **errp)
{
    error_setg(errp, "this host has no KVM for x86 guests: record with -accel tcg");
    return false;
}

void tt_kvm_init(void)
{
}

const char *tt_kvm_rung(void)
{
    return "none";
}
