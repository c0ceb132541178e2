/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The -tt option.
 *
 * Context: main thread, BQL held.
 */
#ifndef TT_OPTIONS_H
#define TT_OPTIONS_H

bool tt_options_are_branch(void);
bool tt_options_say_at_end(void);       /* at-end= was given */

#endif
