/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The options of a recording: those of -tt record and `tt record start`.
 */
#ifndef TT_RECORD_OPTIONS_H
#define TT_RECORD_OPTIONS_H

#define TT_CHECKPOINT_INTERVAL_MS 25000

/* Positions between two digests of the vCPUs, as far as sync points. 2^20 of them
 * cost 4 % of a recording (2026-11). */
#define TT_CHECK_INTERVAL (1ull << 23)
#define TT_CHECK_INTERVAL_MIN 1000

/* Where the guest's writes to its disks go. */
typedef enum TtRecordDisks {
    TT_DISKS_IMAGE,                 /* the user's images; RUN/disks from the first full
                                       checkpoint on */
    TT_DISKS_PRIVATE,               /* RUN/disks */
    TT_DISKS_COMMIT,                /* RUN/disks, and the images at the end */
} TtRecordDisks;

typedef struct TtRecordOptions {
    const char *dir;                /* NULL: a fresh one where we are */
    const char *dir_option;         /* of -tt, for messages; NULL: " (dir=)" */
    uint64_t max_size_bytes;        /* cap of the log; 0: none */
    uint64_t checkpoint_interval_ms;        /* 0: none */
    uint64_t check_interval;        /* positions between two digests; 0: default */
    uint64_t sync_ms;               /* the log is flushed to disk so often; 0: at
                                       its end */
    bool stop_on_error;             /* the VM waits for a disk that fails */
    uint64_t window_ns;             /* keep so much, in time of the VM's clock; 0:
                                       all */
    bool save_on_panic;             /* with a window */
    const char *panic_pattern;      /* NULL: the default */
    bool guard;                     /* find writes to RAM that are not logged */
    TtRecordDisks disks;
    bool names_reads;               /* what is read from disks is not in the log */
    const char *frames;             /* directory of the frame stores, absolute; NULL: none */
    bool names_frames;              /* what they have is not in the log */
    bool full;                      /* each checkpoint can be branched from */
    bool undo;                      /* a full checkpoint before each input */
    uint64_t unlogged;              /* for tests: so many writes of devices to RAM
                                       until one is not logged; 0: all are */
} TtRecordOptions;

/* Of the recording that is on, or is to begin. */
extern TtRecordOptions tt_record_options;

#endif
