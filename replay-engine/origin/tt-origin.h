/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Where values came from: the task of a replay, for `tt origin`.
 *
 * Context: the BQL is held.
 */
#ifndef TT_ORIGIN_H
#define TT_ORIGIN_H

/*
 * The option: -tt replay,origin=QUESTIONS,origin-how=WORDS. @questions: "POS EXPRESSION",
 * with ';' between. @how: depth=N, nodes=N, within=N, with ':' between, or NULL. False:
 * *errp. The process answers, prints what it finds, and ends.
 */
bool tt_origin_option(const char *questions, const char *how, Error **errp);
bool tt_origin_is_on(void);

#endif
