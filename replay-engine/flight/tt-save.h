/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Saving the window of a flight recorder as a run of its own.
 */
#ifndef TT_SAVE_H
#define TT_SAVE_H

/* Once, at start, after the checkpointer's: what was saved just before a recording ends
 * is reported then. */
void tt_save_init(void);
/* BQL. One was begun, and has not been reported. */
bool tt_save_is_busy(void);

/*
 * tt_save_begin: keep the window as a run of its own
 * @name: that is its directory, behind the recording's and a '-', and a mark here
 *        unless it @is_marked; with a slash, a directory. NULL: save-1, ...
 * @done: called in the main loop, with the directory, and with a sentence when it
 *        failed; NULL: nobody waits
 * Main thread. Milliseconds; copying goes on in a thread of ours, and the VM runs, but
 * for a log that reaches max-size: there are no checkpoints until it is done.
 */
typedef void TtSaveDone(void *opaque, const char *dir, const char *why);
bool tt_save_begin(const char *name, bool is_marked, TtSaveDone *done,
                   void *opaque, Error **errp);

#endif
