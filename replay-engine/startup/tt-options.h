/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The -tt option, and what it needs before the machine is made.
 *
 * Context, unless said otherwise: the BQL is held.
 */
#ifndef TT_OPTIONS_H
#define TT_OPTIONS_H

#endif
