/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The execution token: whose turn it is to touch the replayed system.
 *
 * Context, unless said otherwise: the BQL is held.
 */
#ifndef TT_TOKEN_H
#define TT_TOKEN_H

void tt_token_start(void);      /* others queue from now on */
void tt_token_stop(void);
void tt_token_adopt(void);      /* the calling thread is the vCPU's, BQL held */
void tt_token_disown(void);     /* no longer */
bool tt_token_is_mine(void);
/*
 * Between two runs of guest code: whoever asked for the token gets it first.
 * @before is called once if the token is given away. Returns true when others
 * already wait again: run a short slice only.
 */
bool tt_token_yield(void (*before)(void));
bool tt_token_is_wanted(void);          /* by others */
/* @slice: the budget is short, do not look at who waits */
void tt_token_enter_guest(bool slice);
void tt_token_leave_guest(void);
void tt_token_kick(void);               /* make the vCPU leave guest code */
/* Any thread, without a lock: does the vCPU run guest code now, which it leaves soon when it
 * is kicked? */
bool tt_token_is_in_guest(void);

#endif
