/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Page guarding: finds writes to RAM that are not logged.
 *
 * Context, unless said otherwise: the BQL is held.
 */
#ifndef TT_GUARD_H
#define TT_GUARD_H

void tt_guard_option(bool on);
bool tt_guard_start(Error **errp);      /* before blocks are added; if wanted */
void tt_guard_stop(void);               /* says what was found */
void tt_guard_add(void *ram_block);     /* TLBs are flushed before guest code runs */
void tt_guard_drop(void *ram_block);    /* it goes away */
/* This range, as it is now, is in the log. */
void tt_guard_logged(const void *ram_block, uint64_t offset, uint64_t len);
/* Before guest code goes on, or a device call begins: what was written from outside
 * and not logged is told. */
void tt_guard_settle(void);
void tt_guard_discarded(const void *ram_block, uint64_t start, uint64_t len);

#endif
