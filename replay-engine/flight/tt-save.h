/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Saving the window of a flight recorder as a run of its own.
 */
#ifndef TT_SAVE_H
#define TT_SAVE_H

/* Once, at start, after tt_checkpointer_init: a window that was saved just before the
 * recording ends is reported at its end. */
void tt_save_init(void);
/* BQL. One was begun, and has not been reported. */
bool tt_save_is_busy(void);

/*
 * tt_save_begin: keep the window as a run of its own
 * @name: its directory is the recording's, a '-' and this; the position gets a mark of
 *        that name unless it @is_marked. With a slash: a directory. NULL: save-1, ...
 * @done: called in the main loop, with the directory, and with a sentence when it
 *        failed; NULL: nobody waits
 * Main thread. Milliseconds; copying goes on in a thread of ours, and the VM runs, but
 * for a log that reaches max-size: there are no checkpoints until it is done.
 */
typedef void TtSaveDone(void *opaque, const char *dir, const char *why);
bool tt_save_begin(const char *name, bool is_marked, TtSaveDone *done,
                   void *opaque, Error **errp);
const char *tt_save_dir(void);          /* what is being made; NULL: nothing */
/* The one under way is to fail, unless it is too late. */
void tt_save_cancel(void);

#endif
