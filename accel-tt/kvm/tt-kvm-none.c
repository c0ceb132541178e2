/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The functions of this room where the host has no KVM for x86 guests: it is refused. */
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

void tt_kvm_init(void (*mode_changed_of_tcg)(void))
{
}

const char *tt_kvm_positions(void)
{
    return "none";
}
