/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The manifest of a recording.
 *
 * Context: main thread, BQL held.
 */
#ifndef TT_DESCRIBE_H
#define TT_DESCRIBE_H

void tt_describe_recording(void);               /* fills in tt_session.manifest */

#endif
