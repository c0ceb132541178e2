/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Verification of a run, interval by interval.
 *
 * Context, unless said otherwise: the BQL is held.
 */
#ifndef TT_VERIFY_H
#define TT_VERIFY_H

/* The text after verify=: all, FROM-, FROM-TO. False: something else. The replay then
 * verifies itself, and ends the process. */
bool tt_verify_option(const char *text);
bool tt_verify_is_on(void);

#endif
