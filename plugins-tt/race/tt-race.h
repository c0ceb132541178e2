/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Races of the vCPUs of one VM, by happens-before: two accesses to the same bytes by two
 * vCPUs, at least one a write, that nothing orders. What orders is
 *
 *   - a vCPU's own order;
 *   - a byte that an atomic instruction has used: it is a *synchronisation*. Whoever
 *     reads it, with any instruction, comes after the write that it reads. Its own
 *     accesses are no race;
 *   - a lock that is named by a number: who acquires it comes after all that released it;
 *   - an interrupt between vCPUs: who receives comes after all that sent to it.
 *
 * Vector clocks for vCPUs, a pair of clock and vCPU for a byte (FastTrack, Flanagan and
 * Freund 2009), so a byte with a race is found, but of several races of the same byte
 * maybe not each. Neighbouring bytes that are used together share what is known of them.
 *
 * The first atomic access of a byte is ordered behind all that the vCPU has done which
 * wrote it last: that may have been a store that ended a lock taken earlier.
 *
 * Memory: bounded by @max_bytes. When it is reached, what is known of the page that was
 * not used for long is forgotten, and counted; races with those accesses are not found.
 * Nor are races of code that never ran, and of threads on one vCPU. Of a synchronisation
 * that is forgotten its page still knows what it ordered, so that nothing is reported
 * which a lock there orders: up to 2 MB more, for all such pages.
 *
 * Context: one thread at a time. No I/O. Nothing depends on the host: the same calls give
 * the same answers. Internal API.
 */
#ifndef TT_RACE_H
#define TT_RACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TT_RACE_VCPUS_MAX   8
#define TT_RACE_PAGE        4096        /* an access lies within one */
#define TT_RACE_ACCESS_MAX  64          /* bytes of it */
#define TT_RACE_BYTES_MIN   (1u << 20)  /* of max_bytes */

typedef struct TtRace TtRace;

typedef struct TtRaceLimits {
    unsigned n_vcpus;           /* 1 to TT_RACE_VCPUS_MAX */
    size_t max_bytes;           /* for what is known of bytes: TT_RACE_BYTES_MIN or more */
    unsigned max_pairs;         /* that are kept; more are counted only */
    uint32_t max_clock;         /* at which all is forgotten; 0: UINT32_MAX */
    bool has_flags;             /* a byte with a race is a synchronisation from then on */
} TtRaceLimits;

typedef struct TtRaceAccess {
    uint64_t addr;              /* of memory that all vCPUs share: a physical address */
    uint64_t position;          /* handed back */
    uint32_t place;             /* of the code; handed back */
    uint8_t size, vcpu;
    bool is_write, is_atomic;   /* an atomic change is a read, and then a write */
} TtRaceAccess;

typedef struct TtRaceSide {
    uint64_t position;
    uint32_t place;
    uint8_t vcpu;
    bool is_write;
} TtRaceSide;

/* All races of two places; either may have been first. */
typedef struct TtRacePair {
    uint64_t addr, len;         /* of the one that was found first */
    TtRaceSide earlier, later;  /* the same */
    uint64_t times;             /* later accesses that raced */
    bool is_atomic_later;       /* that memory became a synchronisation afterwards */
} TtRacePair;

typedef struct TtRaceStats {
    uint64_t accesses, atomics;
    uint64_t races;             /* the sum of all times, and not_kept */
    uint64_t not_kept;          /* later accesses that raced, of pairs that are not kept */
    uint64_t forgotten_pages;
    uint64_t resets;            /* how often all was forgotten: a clock was at its end */
    size_t peak_bytes;
} TtRaceStats;

TtRace *tt_race_new(const TtRaceLimits *limits);        /* never NULL */
void tt_race_free(TtRace *r);                           /* NULL is fine */

/* @a lies within a page. Cost: O(size); allocates when it sees a page, or new bytes of it,
 * for the first time. */
void tt_race_access(TtRace *r, const TtRaceAccess *a);

/* A lock was taken; is about to be given back. @lock: any number that names it. */
void tt_race_acquire(TtRace *r, unsigned vcpu, uint64_t lock);
void tt_race_release(TtRace *r, unsigned vcpu, uint64_t lock);

/* @vcpu interrupts those of the set @to, bit by bit; has been interrupted. */
void tt_race_send(TtRace *r, unsigned vcpu, uint32_t to);
void tt_race_receive(TtRace *r, unsigned vcpu);

/* In the order in which they were found. @i below the count. */
size_t tt_race_count(const TtRace *r);
void tt_race_get(const TtRace *r, size_t i, TtRacePair *pair);
void tt_race_stats(const TtRace *r, TtRaceStats *stats);

/* Each race that is found, also those of a pair that is known: for tests. */
typedef void TtRaceObserver(void *opaque, uint64_t addr, uint64_t len,
                            const TtRaceSide *earlier, const TtRaceSide *later);
void tt_race_observe(TtRace *r, TtRaceObserver *observer, void *opaque);

/* ---- x86 ---- */

/* Is this instruction atomic: LOCK, or XCHG with memory? @len: its length. */
bool tt_race_x86_is_atomic(const uint8_t *bytes, size_t len);
/*
 * Who is interrupted by a write to the local APIC's interrupt command register, of @vcpu:
 * a set of vCPUs. @high: its upper half; its destination is 8 bits wide, or 32 with
 * @is_x2apic. All others, if that cannot be told.
 */
uint32_t tt_race_x86_targets(unsigned vcpu, unsigned n_vcpus, uint32_t low, uint32_t high,
                             bool is_x2apic);

#endif
