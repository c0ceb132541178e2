/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the vCPUs cache of page tables: the entries of their TLBs, and the code pages that
 * control has entered. The guest sees both by accessed bits (hazard 1), so a state that
 * stands where the TLB is not empty needs a copy of them. And since the TLB is larger than
 * QEMU's, a flush empties only what was filled.
 *
 * A copy holds host addresses and numbers of sections. It is good in this process,
 * and only until the memory map changes.
 *
 * Translated code may have come to a page since, and pages count as not written after
 * a restore. So an entry for writing goes the slow way once, which looks.
 *
 * Context: BQL held. Fills: vCPU thread, in guest code; copies: outside cpu_exec.
 */
#include "qemu/osdep.h"
#include "accel-tt/tcg/tt-tlb.h"
#include "accel-tt/tcg/tt-fetch.h"
#include "accel-tt/tcg/tt-undo-tcg.h"
#include "accel-tt/tcg/tt-watch.h"
#include "accel-tt/tt-vcpus.h"
#include "pages/tt-pageset.h"
#include "tt/hooks.h"
#include "hw/core/cpu.h"
#include "cpu.h"
#include "exec/cputlb.h"
#include "exec/exec-all.h"

typedef struct Entry {
    CPUTLBEntry entry;
    CPUTLBEntryFull full;
    uint16_t index;             /* in the table; those of the victims come last */
} Entry;

typedef struct Mode {
    vaddr large_page_addr, large_page_mask;
    size_t n_used_entries, vindex;
    unsigned mode, n_table, n_all;
    Entry *entries;
} Mode;

typedef struct Vcpu {
    unsigned n_modes;
    Mode modes[NB_MMU_MODES];
    TtPageSet *entered;
} Vcpu;

struct TtTlbs {
    size_t bytes;
    unsigned n_vcpus;
    Vcpu vcpus[];
};

/* ---- a flush ---- */

#define TLB_SIZE (1u << TT_HOOK_TLB_BITS)

/* Entries of a table that may not be empty. */
typedef struct Filled {
    bool is_known;              /* the table was flushed in this mode of -tt */
    uint64_t bits[TLB_SIZE / 64];
} Filled;

static Filled filled[TT_VCPUS_MAX][NB_MMU_MODES];

/* NULL: the vCPU is one too many to be recorded. */
static Filled *filled_of(CPUState *cpu, int mmu_idx)
{
    return (unsigned)cpu->cpu_index < TT_VCPUS_MAX ? &filled[cpu->cpu_index][mmu_idx] : NULL;
}

static void note_filled(CPUState *cpu, int mmu_idx, size_t index)
{
    Filled *all = filled_of(cpu, mmu_idx);

    if (all) {
        all->bits[index % TLB_SIZE / 64] |= 1ull << index % 64;
    }
}

void tt_tlb_fills(CPUState *cpu, int mmu_idx, uint64_t addr)
{
    note_filled(cpu, mmu_idx, addr >> TARGET_PAGE_BITS);
    if (tt_stores_are_logged()) {
        tt_undo_tlb_changes(cpu, mmu_idx, addr);
    }
}

void tt_tlbs_unknown(void)
{
    memset(filled, 0, sizeof(filled));
}

static void empty(Filled *all, CPUTLBEntry *table)
{
    for (unsigned i = 0; i < ARRAY_SIZE(all->bits); i++) {
        for (; all->bits[i]; all->bits[i] &= all->bits[i] - 1) {
            memset(&table[i * 64 + ctz64(all->bits[i])], -1, sizeof(*table));
        }
    }
}

/* As tlb_mmu_flush_locked, which knows no vCPU. */
bool tt_tlb_flush(CPUState *cpu, int mmu_idx, uintptr_t mask)
{
    CPUTLBDesc *d = &cpu->neg.tlb.d[mmu_idx];
    CPUTLBDescFast *f = &cpu->neg.tlb.f[mmu_idx];
    Filled *all = filled_of(cpu, mmu_idx);

    if (!all) {
        return false;
    }
    if (!all->is_known || f->mask != mask || mask != (TLB_SIZE - 1) << CPU_TLB_ENTRY_BITS) {
        *all = (Filled) { .is_known = true };
        return false;
    }
    empty(all, f->table);
    memset(d->vtable, -1, sizeof(d->vtable));
    d->n_used_entries = d->vindex = 0;
    d->large_page_addr = d->large_page_mask = -1;
    return true;
}

/* ---- copies ---- */

static bool is_empty(const CPUTLBEntry *e)
{
    return e->addr_read == -1 && e->addr_write == -1 && e->addr_code == -1;
}

static void add(GArray *out, const CPUTLBEntry *entry,
                const CPUTLBEntryFull *full, size_t index)
{
    if (!is_empty(entry)) {
        Entry e = { .entry = *entry, .full = *full, .index = index };

        g_array_append_val(out, e);
    }
}

static void save_mode(const CPUTLB *tlb, Mode *m)
{
    const CPUTLBDesc *d = &tlb->d[m->mode];
    const CPUTLBDescFast *f = &tlb->f[m->mode];
    GArray *out = g_array_new(false, false, sizeof(Entry));

    for (size_t i = 0; i <= f->mask >> CPU_TLB_ENTRY_BITS; i++) {
        add(out, &f->table[i], &d->fulltlb[i], i);
    }
    m->n_table = out->len;
    for (size_t i = 0; i < CPU_VTLB_SIZE; i++) {
        add(out, &d->vtable[i], &d->vfulltlb[i], i);
    }
    m->n_all = out->len;
    m->entries = (Entry *)g_array_free(out, false);
    m->large_page_addr = d->large_page_addr;
    m->large_page_mask = d->large_page_mask;
    m->n_used_entries = d->n_used_entries;
    m->vindex = d->vindex;
}

static size_t save_vcpu(CPUState *cpu, Vcpu *v)
{
    CPUTLB *tlb = &cpu->neg.tlb;
    size_t bytes = 0;

    for (unsigned mode = 0; mode < NB_MMU_MODES; mode++) {
        Mode *m = &v->modes[v->n_modes];

        if (tlb->c.dirty & (1 << mode)) {
            m->mode = mode;
            save_mode(tlb, m);
            v->n_modes++;
            bytes += m->n_all * sizeof(Entry);
        }
    }
    v->entered = tt_fetch_save(cpu);
    return bytes + tt_pageset_bytes(v->entered);
}

TtTlbs *tt_tlbs_save(void)
{
    unsigned n = tt_vcpus_count();
    TtTlbs *t = g_malloc0(sizeof(*t) + n * sizeof(t->vcpus[0]));

    t->n_vcpus = n;
    t->bytes = sizeof(*t) + n * sizeof(t->vcpus[0]);
    for (unsigned i = 0; i < n; i++) {
        t->bytes += save_vcpu(tt_vcpus_at(i), &t->vcpus[i]);
    }
    return t;
}

/* The next write through it asks whether there is code on the page, and tells that
 * it is written. */
static CPUTLBEntry asking(CPUTLBEntry out)
{
    if (out.addr_write != -1 &&
        !(out.addr_write & (TLB_MMIO | TLB_DISCARD_WRITE))) {
        out.addr_write |= TLB_NOTDIRTY;
    }
    return out;
}

static void load_mode(CPUState *cpu, const Mode *m)
{
    CPUTLB *tlb = &cpu->neg.tlb;
    CPUTLBDesc *d = &tlb->d[m->mode];
    CPUTLBDescFast *f = &tlb->f[m->mode];

    for (unsigned i = 0; i < m->n_all; i++) {
        const Entry *e = &m->entries[i];

        if (i < m->n_table) {
            note_filled(cpu, m->mode, e->index);
            f->table[e->index] = asking(e->entry);
            d->fulltlb[e->index] = e->full;
        } else {
            d->vtable[e->index] = asking(e->entry);
            d->vfulltlb[e->index] = e->full;
        }
    }
    d->large_page_addr = m->large_page_addr;
    d->large_page_mask = m->large_page_mask;
    d->n_used_entries = m->n_used_entries;
    d->vindex = m->vindex;
}

void tt_tlbs_load(const TtTlbs *t)
{
    if (!tt_remedy(TT_OMIT_NEAR_TLB)) {
        return;
    }
    assert(t->n_vcpus == tt_vcpus_count());
    for (unsigned i = 0; i < t->n_vcpus; i++) {
        CPUState *cpu = tt_vcpus_at(i);
        CPUTLB *tlb = &cpu->neg.tlb;
        const Vcpu *v = &t->vcpus[i];

        tlb_flush(cpu);
        qemu_spin_lock(&tlb->c.lock);
        for (unsigned j = 0; j < v->n_modes; j++) {
            load_mode(cpu, &v->modes[j]);
            tlb->c.dirty |= 1 << v->modes[j].mode;
        }
        qemu_spin_unlock(&tlb->c.lock);
        tt_fetch_load(cpu, v->entered);
        tt_watchpoints_unmarked(cpu);
    }
}

static void ask_mode(CPUTLB *tlb, unsigned mode)
{
    CPUTLBDesc *d = &tlb->d[mode];
    CPUTLBDescFast *f = &tlb->f[mode];

    for (size_t i = 0; i <= f->mask >> CPU_TLB_ENTRY_BITS; i++) {
        f->table[i] = asking(f->table[i]);
    }
    for (size_t i = 0; i < CPU_VTLB_SIZE; i++) {
        d->vtable[i] = asking(d->vtable[i]);
    }
}

void tt_tlbs_ask(void)
{
    for (unsigned i = 0; i < tt_vcpus_count(); i++) {
        CPUTLB *tlb = &tt_vcpus_at(i)->neg.tlb;

        qemu_spin_lock(&tlb->c.lock);
        for (unsigned mode = 0; mode < NB_MMU_MODES; mode++) {
            if (tlb->c.dirty & (1 << mode)) {
                ask_mode(tlb, mode);
            }
        }
        qemu_spin_unlock(&tlb->c.lock);
    }
}

size_t tt_tlbs_bytes(const TtTlbs *t)
{
    return t->bytes;
}

void tt_tlbs_free(TtTlbs *t)
{
    for (unsigned i = 0; t && i < t->n_vcpus; i++) {
        for (unsigned j = 0; j < t->vcpus[i].n_modes; j++) {
            g_free(t->vcpus[i].modes[j].entries);
        }
        tt_pageset_free(t->vcpus[i].entered);
    }
    g_free(t);
}
