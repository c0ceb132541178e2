/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What plugins share that count how often each instruction began, by its address. Whole
 * blocks are not counted: where they begin and end is the translator's choice, and a
 * fault leaves one in its middle. Included once in each plugin.
 */
#ifndef TT_PLACES_H
#define TT_PLACES_H

#include <inttypes.h>
#include <stdlib.h>
#include <glib.h>
#include <qemu-plugin.h>

/* A scoreboard has room for each vCPU; so many counters share one. */
#define PLACES_EACH 512

typedef struct Place {
    uint64_t addr, len;
    qemu_plugin_u64 count;
} Place;

typedef struct Counters {
    uint64_t n[PLACES_EACH];
} Counters;

static GHashTable *places;      /* of Place, its own key */
static GMutex places_lock;
static struct qemu_plugin_scoreboard *places_board;
static unsigned places_used;

static guint place_hash(gconstpointer p)
{
    const Place *a = p;

    return a->addr * 0x9e3779b97f4a7c15ull >> 32;
}

static gboolean place_equal(gconstpointer p, gconstpointer q)
{
    const Place *a = p, *b = q;

    return a->addr == b->addr && a->len == b->len;
}

static Place *place_of(const struct qemu_plugin_insn *insn)
{
    const Place key = {
        .addr = qemu_plugin_insn_vaddr(insn), .len = qemu_plugin_insn_size(insn),
    };
    Place *p = g_hash_table_lookup(places, &key);

    if (!p) {
        if (!places_board || places_used == PLACES_EACH) {
            places_board = qemu_plugin_scoreboard_new(sizeof(Counters));
            places_used = 0;
        }
        p = g_new(Place, 1);
        *p = key;
        p->count = (qemu_plugin_u64) {
            places_board, places_used++ * sizeof(uint64_t),
        };
        g_hash_table_add(places, p);
    }
    return p;
}

static void places_translated(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
    g_mutex_lock(&places_lock);
    for (size_t i = 0; i < qemu_plugin_tb_n_insns(tb); i++) {
        struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);

        qemu_plugin_register_vcpu_insn_exec_inline_per_vcpu(
            insn, QEMU_PLUGIN_INLINE_ADD_U64, place_of(insn)->count, 1);
    }
    g_mutex_unlock(&places_lock);
}

static int by_place(gconstpointer x, gconstpointer y)
{
    const Place *a = *(Place *const *)x, *b = *(Place *const *)y;

    return a->addr != b->addr ? (a->addr < b->addr ? -1 : 1) :
        a->len < b->len ? -1 : a->len > b->len;
}

/* A line for each that was executed, by address, for tt run-plugin to add up. */
static void places_print(void (*line)(GString *s, const Place *p, uint64_t count))
{
    g_autofree Place **all = (Place **)g_hash_table_get_keys_as_array(places, NULL);
    unsigned n = g_hash_table_size(places);
    g_autoptr(GString) s = g_string_new(NULL);

    qsort(all, n, sizeof(*all), by_place);
    qemu_plugin_outs("tt-merge: sum\n");
    for (unsigned i = 0; i < n; i++) {
        uint64_t count = qemu_plugin_u64_sum(all[i]->count);

        if (count) {
            g_string_truncate(s, 0);
            line(s, all[i], count);
            qemu_plugin_outs(s->str);
        }
    }
    qemu_plugin_outs("tt-merge: end\n");
}

static int places_install(qemu_plugin_id_t id, int argc, char **argv,
                          qemu_plugin_udata_cb_t at_exit)
{
    if (argc) {
        g_printerr("this plugin takes no arguments: leave out '%s'\n", argv[0]);
        return -1;
    }
    places = g_hash_table_new(place_hash, place_equal);
    qemu_plugin_register_vcpu_tb_trans_cb(id, places_translated);
    qemu_plugin_register_atexit_cb(id, at_exit, NULL);
    return 0;
}

#endif
