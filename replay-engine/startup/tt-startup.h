/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Refusals at the start of the process.
 *
 * Context: main thread, BQL held.
 */
#ifndef TT_STARTUP_H
#define TT_STARTUP_H

/* Says why -tt cannot work like that, and ends the process. */
void G_NORETURN tt_refuse(const char *fmt, ...) G_GNUC_PRINTF(1, 2);

/* "-tt record", "-tt branch" or "-tt ready", for what all of them refuse. */
const char *tt_option_name(void);

#endif
