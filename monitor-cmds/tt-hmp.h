/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * HMP commands.
 *
 * Context: main thread, BQL held.
 */
#ifndef TT_MONITOR_HMP_H
#define TT_MONITOR_HMP_H

/* Before the options. @gave_up: has a gdb whose command HMP carries out left it? */
void tt_hmp_init(bool (*gave_up)(void));

#endif
