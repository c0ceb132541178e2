/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Devices of the host under -tt: QEMU's own vfio-pci calls hooks of
 * tt/hooks-vfio.h; this header is for the rest of our code.
 *
 * Context: the BQL is held.
 */
#ifndef TT_VFIO_H
#define TT_VFIO_H

#include "qom/object.h"

/* Has this vfio-pci shadow memory? One that was plugged in without -tt has guest RAM
 * itself. */
bool tt_vfio_is_shadowed(Object *device);

#endif
