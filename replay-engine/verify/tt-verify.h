/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Verification of a run, interval by interval.
 *
 * Context, unless said otherwise: the BQL is held.
 */
#ifndef TT_VERIFY_H
#define TT_VERIFY_H

/* What stands behind verify=: all, FROM-, FROM-TO. False: something else. */
bool tt_verify_option(const char *text);
bool tt_verify_is_on(void);
bool tt_verify_is_restoring(void);      /* what it finds is its own to say */
/* vCPU thread, at the start of the replay. The process ends when it is done. */
void tt_verify_begin(void);
/* A digest differs, @why: noted, and the replay goes on. False: it is to end. */
bool tt_verify_goes_on(const char *why);

#endif
