/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which page tables the vCPUs used in a part of a run, and where an address leads in
 * them. A search tells from that, and from the pages that were written, that a condition
 * of memory cannot have changed there.
 *
 * Context: one thread at a time; no I/O. Bytes from a file may be hostile. Internal API.
 */
#ifndef TT_PAGING_H
#define TT_PAGING_H

#include "io/tt-base.h"

enum {
    TT_PAGING_ON = 1,           /* CR0.PG */
    TT_PAGING_PAE = 2,          /* CR4 */
    TT_PAGING_PSE = 4,
    TT_PAGING_LA57 = 8,
    TT_PAGING_LONG = 16,        /* EFER.LMA */
    TT_PAGING_SMM = 32,
    TT_PAGING_A20_OFF = 64,     /* address line 20 is masked */
    TT_PAGING_ALL = 127
};

/* What makes an address of a vCPU physical. */
typedef struct TtPaging {
    uint64_t root;              /* CR3, all of it */
    uint32_t cpu;               /* number of the vCPU */
    uint32_t mode;              /* TT_PAGING_ON ... */
} TtPaging;

/*
 * tt_paging_walk: the physical address of @addr, as QEMU's debugger walks: rights, reserved
 * bits and canonical addresses beyond that do not matter
 * @entry reads an entry of a table, of 4 or 8 bytes. Each that @addr depends on is asked for.
 */
typedef enum TtPagingWalk {
    TT_WALK_MAPPED,             /* *@physical */
    TT_WALK_UNMAPPED,
    TT_WALK_UNKNOWN,            /* @entry could not read one */
} TtPagingWalk;
typedef bool TtPagingEntry(void *opaque, uint64_t physical, unsigned bytes,
                           uint64_t *entry);
TtPagingWalk tt_paging_walk(const TtPaging *p, uint64_t addr, TtPagingEntry *entry,
                            void *opaque, uint64_t *physical);

/* *@addr becomes what it is in that mode: outside of long mode addresses have 32 bits, and
 * may come with copies of the uppermost one above it. False: it is none. */
bool tt_paging_address(bool is_long, uint64_t *addr);

/* ---- all that were used since some position ---- */
#define TT_PAGINGS_MAX  1024    /* more are not told from one another */

typedef struct TtPagings TtPagings;

TtPagings *tt_pagings_new(void);
void tt_pagings_free(TtPagings *s);             /* NULL is fine */
/* Not after tt_pagings_decode: empty, from @since on; one more. */
void tt_pagings_begin(TtPagings *s, uint64_t since);
void tt_pagings_add(TtPagings *s, const TtPaging *p);   /* O(1); nothing if it is known */
void tt_pagings_lose(TtPagings *s);             /* there were others, unknown ones */
bool tt_pagings_are_known(const TtPagings *s);
uint64_t tt_pagings_since(const TtPagings *s);
/* Only while they are known. */
const TtPaging *tt_pagings_list(const TtPagings *s, size_t *n);

/* Format: docs/reference/checkpoint-state.rst. At most this many bytes; g_free. */
#define TT_PAGINGS_BYTES_MAX (16 + TT_PAGINGS_MAX * 16)
uint8_t *tt_pagings_encode(const TtPagings *s, uint32_t *len);
/* NULL: they are damaged, or are none. */
TtPagings *tt_pagings_decode(const uint8_t *bytes, uint32_t len);

#endif
