/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Single-producer, single-consumer ring of pointers.
 *
 * head counts all pushes, tail all pops; both run on forever (2^32 wraps are harmless
 * because the capacity divides it) and their difference is what the ring holds.
 *
 * I1: 0 <= head - tail <= size.
 * I2: only the producer stores head, only the consumer stores tail.
 * I3: a slot is written before the head that covers it is released, and read
 *     before the tail that frees it is released.
 */
#include "log/tt-ring.h"

#include <assert.h>
#include <stdatomic.h>
#include <glib.h>

#define RING_CAPACITY_MAX 4096

struct TtRing {
    /* The two counters are on cache lines of their own: each is written by
     * one side all the time. */
    _Alignas(64) _Atomic uint32_t head;
    _Alignas(64) _Atomic uint32_t tail;
    _Alignas(64) uint32_t capacity;
    uint32_t mask;              /* slots - 1; slots is a power of two */
    void **slot;
};

TtRing *tt_ring_new(unsigned capacity)
{
    assert(capacity >= 1 && capacity <= RING_CAPACITY_MAX);

    TtRing *r = g_aligned_alloc0(1, sizeof(*r), 64);
    uint32_t slots = 1;
    while (slots < capacity) {
        slots *= 2;
    }
    r->capacity = capacity;
    r->mask = slots - 1;
    r->slot = g_new0(void *, slots);
    return r;
}

void tt_ring_free(TtRing *r)
{
    if (r) {
        g_free(r->slot);
        g_aligned_free(r);
    }
}

bool tt_ring_push(TtRing *r, void *p)
{
    uint32_t head = atomic_load_explicit(&r->head, memory_order_relaxed);
    uint32_t tail = atomic_load_explicit(&r->tail, memory_order_acquire);

    assert(p != NULL);
    assert(head - tail <= r->capacity);                 /* I1 */
    if (head - tail == r->capacity) {
        return false;
    }
    r->slot[head & r->mask] = p;
    atomic_store_explicit(&r->head, head + 1, memory_order_release); /* I3 */
    return true;
}

void *tt_ring_pop(TtRing *r)
{
    uint32_t tail = atomic_load_explicit(&r->tail, memory_order_relaxed);
    uint32_t head = atomic_load_explicit(&r->head, memory_order_acquire);

    assert(head - tail <= r->capacity);                 /* I1 */
    if (head == tail) {
        return NULL;
    }
    void *p = r->slot[tail & r->mask];
    atomic_store_explicit(&r->tail, tail + 1, memory_order_release); /* I3 */
    return p;
}

unsigned tt_ring_used(const TtRing *r)
{
    TtRing *ring = (TtRing *)r;     /* C11 atomics take no const pointer */
    /* Tail first: it only grows, so the difference cannot be negative. It may
     * come out too large when the producer refills meanwhile. */
    uint32_t tail = atomic_load_explicit(&ring->tail, memory_order_acquire);
    uint32_t head = atomic_load_explicit(&ring->head, memory_order_acquire);
    uint32_t used = head - tail;

    return used > r->capacity ? r->capacity : used;
}
