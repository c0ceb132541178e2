/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Unit tests of the ring, alone and between two threads.
 */
#include "log/tt-ring.h"

#include <glib.h>

static void test_keeps_order_and_capacity(void)
{
    static const unsigned capacities[] = { 1, 2, 3, 7, 8, 9, 4096 };

    for (unsigned i = 0; i < G_N_ELEMENTS(capacities); i++) {
        unsigned cap = capacities[i];
        TtRing *r = tt_ring_new(cap);
        uintptr_t in = 1, out = 1;

        g_assert_null(tt_ring_pop(r));
        for (unsigned round = 0; round < 5; round++) {
            while (tt_ring_push(r, (void *)in)) {
                in++;
            }
            g_assert_cmpuint(in - out, ==, cap);
            g_assert_cmpuint(tt_ring_used(r), ==, cap);
            for (unsigned k = 0; k < (cap + 1) / 2; k++) {
                g_assert_cmpuint((uintptr_t)tt_ring_pop(r), ==, out++);
            }
            g_assert_cmpuint(tt_ring_used(r), ==, in - out);
        }
        while (out < in) {
            g_assert_cmpuint((uintptr_t)tt_ring_pop(r), ==, out++);
        }
        g_assert_null(tt_ring_pop(r));
        tt_ring_free(r);
    }
    tt_ring_free(NULL);
}

typedef struct Pipe {
    TtRing *full, *empty;
    unsigned n;
} Pipe;

typedef struct Box {
    uint64_t seq;
    uint64_t body[7];           /* all equal to seq when the box is passed */
} Box;

static gpointer producer(gpointer opaque)
{
    Pipe *p = opaque;

    for (uint64_t seq = 0; seq < p->n; seq++) {
        Box *b;
        while (!(b = tt_ring_pop(p->empty))) {
            g_thread_yield();
        }
        b->seq = seq;
        for (unsigned i = 0; i < G_N_ELEMENTS(b->body); i++) {
            b->body[i] = seq;
        }
        while (!tt_ring_push(p->full, b)) {
            g_thread_yield();
        }
    }
    return NULL;
}

static void test_two_threads_see_whole_boxes_in_order(void)
{
    Box boxes[5];
    Pipe p = { tt_ring_new(3), tt_ring_new(5), 300000 };
    GThread *thread;

    for (unsigned i = 0; i < G_N_ELEMENTS(boxes); i++) {
        g_assert_true(tt_ring_push(p.empty, &boxes[i]));
    }
    thread = g_thread_new("producer", producer, &p);
    for (uint64_t seq = 0; seq < p.n; seq++) {
        Box *b;
        while (!(b = tt_ring_pop(p.full))) {
            g_thread_yield();
        }
        g_assert_cmpuint(tt_ring_used(p.full), <=, 3);
        g_assert_cmpuint(b->seq, ==, seq);
        for (unsigned i = 0; i < G_N_ELEMENTS(b->body); i++) {
            g_assert_cmpuint(b->body[i], ==, seq);
        }
        memset(b, 0xa5, sizeof(*b));
        g_assert_true(tt_ring_push(p.empty, b));
    }
    g_thread_join(thread);
    g_assert_null(tt_ring_pop(p.full));
    tt_ring_free(p.full);
    tt_ring_free(p.empty);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/tt/ring/keeps-order-and-capacity",
                    test_keeps_order_and_capacity);
    g_test_add_func("/tt/ring/two-threads-see-whole-boxes-in-order",
                    test_two_threads_see_whole_boxes_in_order);
    return g_test_run();
}
