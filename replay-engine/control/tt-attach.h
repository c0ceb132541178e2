/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Starts and ends the recording of a VM that is running.
 *
 * Context, unless said otherwise: the BQL is held.
 */
#ifndef TT_ATTACH_H
#define TT_ATTACH_H

typedef struct TtRecordOptions {
    const char *dir;                /* NULL: a fresh one where we are */
    uint64_t max_size_bytes;        /* 0: no cap */
    uint64_t checkpoint_interval_ms;        /* 0: none */
    bool stop_on_error;             /* the VM waits for a disk that fails */
    uint64_t window_ns;             /* 0: keep all */
    bool save_on_panic;
    const char *panic_pattern;      /* NULL: the default */
    bool guard;                     /* find writes to RAM that are not logged */
} TtRecordOptions;

/* Main thread. The VM is stopped for the while and goes on afterwards if it ran. */
bool tt_attach(const TtRecordOptions *opt, Error **errp);
/* Where the recording that has ended stood. @dir stays valid. */
typedef struct TtEnded {
    const char *dir;
    uint64_t pos, events, bytes;
    bool whole;                     /* all of it is on disk */
} TtEnded;
bool tt_detach(TtEnded *ended, Error **errp);

#endif
