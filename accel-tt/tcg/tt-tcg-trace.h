/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * TCG's part of branch traces: says where control went elsewhere.
 *
 * Context: the BQL is held.
 */
#ifndef TT_TCG_TRACE_H
#define TT_TCG_TRACE_H

/* All vCPUs report to accel-tt/tt-branch-trace.c, or do not. Between two turns. */
void tt_tcg_report_branches(bool on);

#endif
