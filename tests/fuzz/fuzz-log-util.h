/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Checksums would stop every mutation of a log at the door: this sets them
 * right again, so that fuzzing reaches what follows.
 */
#ifndef FUZZ_LOG_UTIL_H
#define FUZZ_LOG_UTIL_H

#include "tt-log-format.h"

#include <glib.h>

/* A copy of @data with right checksums wherever a header seems to be. */
uint8_t *fuzz_log_mend(const uint8_t *data, size_t size);

#endif
