/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Where a recording's data goes that need not be in its log: disk=, disk-reads=, frames=,
 * payload= of -tt; memory of a replay: checkpoint-memory=, step-memory=.
 *
 * Context: main thread, at start. They exit on what is wrong.
 */
#ifndef TT_OPTIONS_DATA_INT_H
#define TT_OPTIONS_DATA_INT_H

void tt_options_parse_data(struct QemuOpts *opts);      /* of disks */
void tt_options_parse_memory(struct QemuOpts *opts);    /* of a replay */
/* When last= is known. */
void tt_options_parse_frames(struct QemuOpts *opts);

#endif
