/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Parts of a run in which a condition of memory cannot change, so that a search need not
 * execute them (URDB, section 4: intervals that cannot hold it).
 *
 * A recorder's checkpoint lists the pages of RAM that were written since the one before,
 * and the page tables that the vCPUs used. The condition is evaluated here under each of
 * these, with our own walk, which notes the pages of the tables and of the values. If none
 * of these pages was written, it has the same values all the way: what it reads, and where
 * the addresses lead, is in them. Then it is enough that none of the values is a hit. A
 * memory map that changed, or page tables of which nothing is known, leave nothing out.
 */
#include "qemu/osdep.h"
#include "accel-tt/tt-vcpus.h"
#include "accel-tt/x86/tt-x86-paging.h"
#include "hw-tt/memory/tt-memory-watch.h"
#include "hw-tt/memory/tt-memory.h"
#include "pages/tt-page.h"
#include "tt-find-int.h"
#include "travel/tt-checkpoints.h"
#include "tt/hooks.h"
#include "hw/core/cpu.h"

/* Below one paging. */
typedef struct Sight {
    const TtPaging *p;
    GHashTable *pages;          /* ram_addr_t of each page that counts */
    bool is_unknown;
} Sight;

/* ---- what a condition sees ---- */

static bool read_physical(Sight *s, uint64_t physical, void *bytes, unsigned len)
{
    const uint8_t *page;
    uint64_t ram, n;

    if (!tt_memory_ram_at_physical(tt_vcpu(), physical, s->p->mode & TT_PAGING_SMM, &ram) ||
        (n = tt_memory_page_of(ram)) == UINT64_MAX) {
        s->is_unknown = true;
        return false;
    }
    g_hash_table_add(s->pages, GUINT_TO_POINTER(ram / TT_PAGE_BYTES));
    page = tt_memory_page(NULL, n);
    if (page) {
        memcpy(bytes, page + ram % TT_PAGE_BYTES, len);
    } else {
        memset(bytes, 0, len);
    }
    return true;
}

static bool read_entry(void *opaque, uint64_t physical, unsigned bytes, uint64_t *entry)
{
    uint64_t le = 0;

    if (!read_physical(opaque, physical, &le, bytes)) {
        return false;
    }
    *entry = le64_to_cpu(le);
    return true;
}

static bool read_part(Sight *s, uint64_t addr, uint8_t *bytes, unsigned len)
{
    uint64_t physical = 0;

    switch (tt_paging_walk(s->p, addr, read_entry, s, &physical)) {
    case TT_WALK_MAPPED:
        return read_physical(s, physical, bytes, len);
    case TT_WALK_UNKNOWN:
        s->is_unknown = true;
        return false;
    default:
        return false;
    }
}

static bool read_mem(void *opaque, uint64_t addr, uint8_t *bytes, unsigned len)
{
    Sight *s = opaque;
    bool is_long = s->p->mode & TT_PAGING_LONG;
    unsigned first;

    if (!tt_paging_address(is_long, &addr) || addr + len - 1 < addr) {
        return false;
    }
    if (!is_long && addr + len > 1ull << 32) {
        s->is_unknown = true;               /* where it wraps around */
        return false;
    }
    first = MIN(len, TT_PAGE_BYTES - addr % TT_PAGE_BYTES);
    return read_part(s, addr, bytes, first) &&
        (first == len || read_part(s, addr + first, bytes + first, len - first));
}

static bool read_reg(void *opaque, TtCondReg reg, uint64_t *value)
{
    Sight *s = opaque;

    if (reg == TT_COND_CPU) {
        *value = s->p->cpu;
    } else if (reg == TT_COND_CR3 && s->p->mode & TT_PAGING_ON) {
        *value = s->p->root;
    } else {                                /* it changes, and nothing tells of it */
        s->is_unknown = true;
        return false;
    }
    return true;
}

static TtStatus look(const TtCond *c, Sight *s, uint64_t *value)
{
    const TtCondSource source = { .opaque = s, .reg = read_reg, .mem = read_mem };

    return tt_cond_eval(c, &source, value);
}

/* ---- whether anything changes ---- */

static bool is_written(const Sight *s, uint64_t since, uint64_t to)
{
    GHashTableIter it;
    gpointer page;

    g_hash_table_iter_init(&it, s->pages);
    while (g_hash_table_iter_next(&it, &page, NULL)) {
        uint64_t ram = (uint64_t)GPOINTER_TO_UINT(page) * TT_PAGE_BYTES;

        if (tt_checkpoints_unwritten_since(ram, to) > since) {
            return true;
        }
    }
    return false;
}

/* Our walk finds here what QEMU's finds: if not, we do not know this vCPU. */
static bool sees_the_same(const TtCond *c)
{
    g_autoptr(GHashTable) pages = g_hash_table_new(NULL, NULL);
    const TtPaging now = tt_paging_of(tt_vcpu());
    Sight s = { .p = &now, .pages = pages };
    uint64_t seen, value;
    TtStatus a = look(c, &s, &seen), b = tt_find_look(c, &value);

    return !s.is_unknown && a == b && seen == value;
}

/* From here to the checkpoint at @to, before which @all were in use. */
static bool is_quiet(const TtCond *c, const TtEdge *e, bool of_writes, uint64_t from,
                     const TtPagings *all, uint64_t to)
{
    g_autoptr(GHashTable) pages = g_hash_table_new(NULL, NULL);
    Sight s = { .pages = pages };
    bool is = true;
    size_t n;
    const TtPaging *list = tt_pagings_list(all, &n);

    for (size_t i = 0; is && i < n; i++) {
        uint64_t value = 0;
        TtStatus status;

        s.p = &list[i];
        status = look(c, &s, &value);
        /* A write while no address leads to the place is to be told of. */
        is = !s.is_unknown && (of_writes ? status == TT_OK :
                               tt_edge_is_still(e, status, value));
    }
    return is && !is_written(&s, from, to);
}

uint64_t tt_find_quiet_until(const TtCond *c, const TtEdge *e, bool of_writes,
                             uint64_t from, uint64_t to, uint64_t *next)
{
    uint64_t until = from, at;
    bool is = !(tt_omit & TT_OMIT_SEARCH_SKIP), is_known = is && sees_the_same(c);

    *next = to;
    while (is) {
        TtPagings *all = tt_checkpoints_paging_after(until, &at);

        if (until == from && at > from) {
            *next = MIN(at, to);            /* it may be quiet from there on */
        }
        is = is_known && all && at <= to && tt_pagings_are_known(all) &&
            tt_pagings_since(all) <= until &&
            is_quiet(c, e, of_writes, from, all, at);
        until = is ? at : until;
        tt_pagings_free(all);
    }
    return until;
}
