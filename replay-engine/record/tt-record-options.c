/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The options of the recording that is on, or is to begin. */
#include "qemu/osdep.h"
#include "record/tt-record-options.h"

TtRecordOptions tt_record_options = { .stop_on_error = true };
