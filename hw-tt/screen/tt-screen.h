/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The graphical console of a replay.
 *
 * Context, unless said otherwise: the BQL is held.
 */
#ifndef TT_SCREEN_H
#define TT_SCREEN_H

#include "log/tt-log.h"
#include "log/tt-sched.h"

void tt_screen_start(void);         /* the console of a replay */
/* Is what it shows the guest's, or a text in place of it? Any thread. */
bool tt_screen_is_shown(void);

/* Can there be pictures of the screen? If not, it is said. Once, at the start. */
bool tt_screen_is_possible(void);

/* Where the log of the replay is read, and how far it has come: set once. */
typedef struct TtScreenLog {
    TtSched *(*sched)(void);
    TtLogReader *(*reader)(void);
} TtScreenLog;

void tt_screen_set_log(const TtScreenLog *log);
const TtScreenLog *tt_screen_log(void);

#endif
