/* SPDX-License-Identifier: GPL-2.0-or-later */
/* HMP commands of -tt, for the table in monitor/hmp-target.c. */
#ifndef TT_HMP_H
#define TT_HMP_H

void hmp_tt(Monitor *mon, const QDict *qdict);
void hmp_info_tt(Monitor *mon, const QDict *qdict);

#endif
