/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Options of -tt: where data goes that need not be in the log, and memory of a replay.
 */
#include "qemu/osdep.h"
#include "hw-tt/memory/tt-memory.h"
#include "net-tt/glue/tt-net-frames.h"
#include "record/tt-record-options.h"
#include "session/tt-paths.h"
#include "startup/tt-options.h"
#include "startup/tt-startup.h"
#include "travel/tt-cptable.h"
#include "travel/tt-travel-ring.h"
#include "tt-options-data-int.h"
#include "qemu/option.h"
#include "qemu/units.h"

static void parse_disk(const char *where)
{
    if (where && tt_options_are_branch()) {
        tt_refuse("-tt: disk is valid with record only: a branch writes to its own run");
    }
    if (where && strcmp(where, "private") && strcmp(where, "commit") &&
        strcmp(where, "image")) {
        tt_refuse("-tt: disk takes 'private', 'commit' or 'image', not '%s'", where);
    }
    tt_record_options.disks = !where || !strcmp(where, "private") ? TT_DISKS_PRIVATE :
        strcmp(where, "commit") ? TT_DISKS_IMAGE : TT_DISKS_COMMIT;
}

static void parse_disk_reads(const char *where)
{
    if (where && strcmp(where, "log") && strcmp(where, "store")) {
        tt_refuse("-tt: disk-reads takes 'log' or 'store', not '%s'", where);
    }
    tt_record_options.names_reads = where && !strcmp(where, "store");
    if (tt_record_options.names_reads && tt_record_options.disks != TT_DISKS_PRIVATE) {
        tt_refuse("-tt: disk-reads=store needs disk=private: the images that the guest "
                  "reads must not change");
    }
}

void tt_options_parse_data(QemuOpts *opts)
{
    parse_disk(qemu_opt_get(opts, "disk"));
    parse_disk_reads(qemu_opt_get(opts, "disk-reads"));
}

void tt_options_parse_memory(QemuOpts *opts)
{
    uint64_t steps = qemu_opt_get_size(opts, "step-memory", TT_TRAVEL_RING_BYTES);

    if (steps > TT_TRAVEL_RING_BYTES_MAX) {
        tt_refuse("-tt: " TT_TRAVEL_RING_HELP);
    }
    tt_travel_ring_bytes = steps;
    tt_checkpoints_bytes = qemu_opt_get_size(opts, "checkpoint-memory", GiB);
}

void tt_options_parse_frames(QemuOpts *opts)
{
    const char *dir = qemu_opt_get(opts, "frames");
    const char *payload = qemu_opt_get(opts, "payload");

    if (payload && strcmp(payload, "reference") && strcmp(payload, "both")) {
        tt_refuse("-tt: payload takes 'reference' or 'both', not '%s'", payload);
    }
    if (!dir && payload) {
        tt_refuse("-tt: payload needs frames=DIR, the directory of the group's frame "
                  "stores");
    }
    if (!dir) {
        return;
    }
    if (!*dir) {
        tt_refuse("-tt: frames takes a directory, the same for all VMs of the group");
    }
    if (tt_record_options.window_ns) {
        tt_refuse("-tt: frames and last exclude each other: a frame store keeps all that "
                  "was sent");
    }
    tt_record_options.frames = tt_path_absolute(dir);
    tt_record_options.names_frames = !payload || strcmp(payload, "both");
    tt_net_frames_init(tt_record_options.frames);
    tt_memory_in_frame(tt_net_frames_find);
}
