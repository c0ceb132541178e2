/*
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Guest "races": its other CPUs begin as those of "smp" do.
 */
#include "smp.S"
