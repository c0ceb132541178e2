/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Page store against full copies: see pagestore-model.h.
 *
 * The guest is a fixed program: which pages it writes at a position, and with
 * what, is a function of the position and of the first input byte. So history
 * is one line, as it is for a replay, and any state can be computed twice. Some
 * programs (first byte from OFF_LINE on) are also written to from outside, as
 * by a debugger: contents must stay exact, only "changed" has no meaning then.
 */
#include "pagestore-model.h"
#include "tt-pagestore-test.h"

#include <glib.h>

#define N_PAGES     14
#define N_VALUES    7
#define POS_MAX     200
#define NODES_MAX   24
#define OFF_LINE    192

/* Neighbours, both sides of a leaf of the store's map, and far away. */
static const uint64_t page_number[N_PAGES] = {
    0, 1, 2, 3, 1022, 1023, 1024, 1025, 2047, 2048, 70000, 70001, 262143,
    262144,
};

typedef struct ModelNode {
    TtNodeId id;
    uint64_t pos;
    uint8_t value[N_PAGES];
} ModelNode;

typedef struct Model {
    TtPageStore *ps;
    uint8_t program;
    uint8_t pattern[N_VALUES][TT_PAGE_BYTES];
    uint8_t ram[N_PAGES][TT_PAGE_BYTES];
    uint8_t value[N_PAGES];     /* what the RAM should hold */
    bool dirty[N_PAGES];
    uint64_t pos;
    TtNodeId base;
    ModelNode node[NODES_MAX];
    unsigned n_nodes;
    const uint8_t *in, *end;
    PagestoreModelStats *stats;
} Model;

static uint8_t next_byte(Model *m)
{
    return m->in < m->end ? *m->in++ : 0;
}

/* ---- the guest ---- */

static uint32_t mix(uint32_t a, uint32_t b, uint32_t c)
{
    uint32_t h = a * 0x9e3779b1u ^ b * 0x85ebca77u ^ c * 0xc2b2ae3du;

    h = (h ^ h >> 15) * 0x2c1b3c6du;
    h = (h ^ h >> 12) * 0x297a2d39u;
    return h ^ h >> 15;
}

/* Does the step that ends at @pos write page @i? */
static bool is_written(const Model *m, uint64_t pos, unsigned i)
{
    return mix(m->program, pos, i) % 9 == 0;
}

static uint8_t written_value(const Model *m, uint64_t pos, unsigned i)
{
    return mix(m->program + 1000, pos, i) % N_VALUES;
}

static void make_patterns(Model *m)
{
    for (unsigned v = 1; v < N_VALUES; v++) {
        /* Two differ from zero in one byte only, at either end. */
        m->pattern[v][v == 2 ? 0 : TT_PAGE_BYTES - 1] = v;
        for (unsigned k = 0; v > 2 && k < TT_PAGE_BYTES; k++) {
            m->pattern[v][k] = mix(v, k / 8, k % 8);
        }
    }
}

static void write_page(Model *m, unsigned i, uint8_t value)
{
    m->value[i] = value;
    memcpy(m->ram[i], m->pattern[value], TT_PAGE_BYTES);
    m->dirty[i] = true;
}

static void run(Model *m, unsigned steps)
{
    if (m->program >= OFF_LINE) {
        uint8_t poke = next_byte(m);

        write_page(m, poke % N_PAGES, poke / N_PAGES % N_VALUES);
    }
    for (; steps > 0 && m->pos < POS_MAX; steps--) {
        m->pos++;
        for (unsigned i = 0; i < N_PAGES; i++) {
            if (is_written(m, m->pos, i)) {
                write_page(m, i, written_value(m, m->pos, i));
            }
        }
    }
}

/* ---- what the store calls ---- */

static unsigned index_of(uint64_t page)
{
    for (unsigned i = 0; i < N_PAGES; i++) {
        if (page_number[i] == page) {
            return i;
        }
    }
    g_error("the store made page %" G_GUINT64_FORMAT " up", page);
}

static const void *fetch(void *opaque, uint64_t page)
{
    Model *m = opaque;

    return m->ram[index_of(page)];
}

typedef struct PutCheck {
    Model *m;
    uint8_t (*ram)[TT_PAGE_BYTES];
    const ModelNode *to;
    uint64_t next_page;         /* lowest page that may come now */
    bool put[N_PAGES];
    size_t n;
} PutCheck;

static void put(void *opaque, uint64_t page, const void *bytes)
{
    PutCheck *pc = opaque;
    unsigned i = index_of(page);

    g_assert_cmpuint(page, >=, pc->next_page);
    pc->next_page = page + 1;
    pc->put[i] = true;
    pc->n++;
    if (bytes) {
        memcpy(pc->ram[i], bytes, TT_PAGE_BYTES);
    } else {
        memset(pc->ram[i], 0, TT_PAGE_BYTES);
    }
}

/* ---- helpers ---- */

static ModelNode *node_by_id(Model *m, TtNodeId id)
{
    for (unsigned k = 0; k < m->n_nodes; k++) {
        if (m->node[k].id == id) {
            return &m->node[k];
        }
    }
    return NULL;
}

static ModelNode *node_by_pos(Model *m, uint64_t pos)
{
    for (unsigned k = 0; k < m->n_nodes; k++) {
        if (m->node[k].pos == pos) {
            return &m->node[k];
        }
    }
    return NULL;
}

static size_t dirty_list(const Model *m, uint64_t *list)
{
    size_t n = 0;

    for (unsigned i = 0; i < N_PAGES; i++) {
        if (m->base ? m->dirty[i] : m->value[i] != 0) {
            list[n++] = page_number[i];
        }
    }
    return n;
}

/* ---- operations ---- */

static TtStatus restore_into(Model *m, const ModelNode *to,
                             uint8_t (*ram)[TT_PAGE_BYTES])
{
    PutCheck pc = { .m = m, .ram = ram, .to = to };
    const ModelNode *base = node_by_id(m, m->base);
    uint64_t list[N_PAGES];
    size_t n_dirty = dirty_list(m, list), n_put = 0;
    TtStatus st = tt_pagestore_restore(m->ps, to->id, m->base, list, n_dirty,
                                       put, &pc, &n_put);

    if (st != TT_OK) {
        g_assert_cmpint(st, ==, TT_ERR_NOMEM);
        g_assert_cmpuint(pc.n, ==, 0);
        return st;
    }
    g_assert_cmpuint(n_put, ==, pc.n);
    for (unsigned i = 0; i < N_PAGES; i++) {
        g_assert_cmpint(pc.put[i], ==,
                        m->dirty[i] || base->value[i] != to->value[i]);
        g_assert(!memcmp(ram[i], m->pattern[to->value[i]], TT_PAGE_BYTES));
    }
    return TT_OK;
}

static void op_restore(Model *m)
{
    unsigned k = next_byte(m);
    ModelNode *to;

    if (!m->n_nodes) {
        return;
    }
    to = &m->node[k % m->n_nodes];
    if (restore_into(m, to, m->ram) != TT_OK) {
        m->stats->n_nomem++;
        return;
    }
    memcpy(m->value, to->value, sizeof(m->value));
    memset(m->dirty, 0, sizeof(m->dirty));
    m->pos = to->pos;
    m->base = to->id;
    m->stats->n_restore++;
}

static void op_add(Model *m, bool rebase_to_it)
{
    ModelNode *base = node_by_id(m, m->base);
    bool is_valid = !node_by_pos(m, m->pos) && (!base || base->pos < m->pos);
    uint64_t list[N_PAGES];
    size_t n_dirty = dirty_list(m, list);
    TtNodeId id = 0;
    TtStatus st;

    if (m->n_nodes == NODES_MAX) {
        return;
    }
    st = tt_pagestore_add(m->ps, m->pos, m->base, list, n_dirty, fetch, m,
                          &id);
    if (!is_valid) {
        g_assert_cmpint(st, ==, TT_ERR_INVALID);
        m->stats->n_refused++;
        return;
    }
    if (st == TT_ERR_NOMEM) {
        m->stats->n_nomem++;
        return;
    }
    g_assert_cmpint(st, ==, TT_OK);
    g_assert_cmpuint(id, !=, 0);
    g_assert_null(node_by_id(m, id));
    m->node[m->n_nodes] = (ModelNode) { .id = id, .pos = m->pos };
    memcpy(m->node[m->n_nodes++].value, m->value, sizeof(m->value));
    if (rebase_to_it || !m->base) {
        m->base = id;
        memset(m->dirty, 0, sizeof(m->dirty));
    }
    m->stats->n_add++;
}

/* Says base = @to from now on. */
static bool rebase(Model *m, const ModelNode *to)
{
    const ModelNode *from = node_by_id(m, m->base);
    bool named[N_PAGES] = { false };
    size_t n;
    uint64_t *pages = tt_pagestore_rebase(m->ps, m->base, to->id, &n);

    if (!pages) {
        m->stats->n_nomem++;
        return false;
    }
    for (size_t k = 0; k < n; k++) {
        g_assert(k == 0 || pages[k - 1] < pages[k]);
        named[index_of(pages[k])] = true;
    }
    for (unsigned i = 0; i < N_PAGES; i++) {
        g_assert(named[i] || from->value[i] == to->value[i]);
        m->dirty[i] |= named[i];
    }
    g_free(pages);
    m->base = to->id;
    m->stats->n_rebase++;
    return true;
}

static void op_delete(Model *m)
{
    unsigned k = next_byte(m), other = next_byte(m);
    ModelNode *node;

    if (!m->n_nodes) {
        return;
    }
    node = &m->node[k % m->n_nodes];
    if (m->base == node->id && m->n_nodes > 1) {
        ModelNode *to = &m->node[other % m->n_nodes];

        if (to == node) {
            to = &m->node[(k + 1) % m->n_nodes];
        }
        if (!rebase(m, to)) {
            return;
        }
    } else if (m->base == node->id) {
        m->base = 0;
    }
    tt_pagestore_delete(m->ps, node->id);
    *node = m->node[--m->n_nodes];
    m->stats->n_delete++;
}

static void op_rebase(Model *m)
{
    unsigned k = next_byte(m);

    if (m->n_nodes) {
        rebase(m, &m->node[k % m->n_nodes]);
    }
}

/* ---- checks ---- */

/* Reverse search may skip an interval only if nothing was written in it. */
static void check_changed(Model *m)
{
    for (unsigned k = 0; k < m->n_nodes; k++) {
        const ModelNode *node = &m->node[k];
        uint64_t before = 0;

        for (unsigned j = 0; j < m->n_nodes; j++) {
            if (m->node[j].pos < node->pos) {
                before = MAX(before, m->node[j].pos);
            }
        }
        for (unsigned i = 0; before && i < N_PAGES; i++) {
            for (uint64_t pos = before + 1; pos <= node->pos; pos++) {
                g_assert(!is_written(m, pos, i) ||
                         tt_pagestore_changed(m->ps, node->id,
                                              page_number[i]));
            }
        }
    }
}

static void check_all(Model *m)
{
    static uint8_t scratch[N_PAGES][TT_PAGE_BYTES];

    tt_pagestore_fail_alloc(m->ps, 0);
    tt_pagestore_check(m->ps);
    for (unsigned k = 0; k < m->n_nodes; k++) {
        memcpy(scratch, m->ram, sizeof(scratch));
        g_assert_cmpint(restore_into(m, &m->node[k], scratch), ==, TT_OK);
    }
    if (m->program < OFF_LINE) {
        check_changed(m);
    }
    g_assert_cmpuint(tt_pagestore_versions(m->ps), <=, N_VALUES - 1);
}

static void operate(Model *m, uint8_t op)
{
    switch (op & 7) {
    case 0:
    case 1:
        run(m, (op >> 3) + 1);
        break;
    case 2:
        op_add(m, true);
        break;
    case 3:
        run(m, op >> 5);
        op_add(m, op & 0x10);
        break;
    case 4:
        op_restore(m);
        break;
    case 5:
        op_delete(m);
        break;
    case 6:
        if (op & 0x20) {
            tt_pagestore_pack(m->ps, (op >> 6) * 4 * TT_PAGE_BYTES,
                              (op & 0x18) * TT_PAGE_BYTES);
            m->stats->n_pack++;
        } else {
            op_rebase(m);
        }
        break;
    case 7:
        /* Memory gets short for the next operation. */
        tt_pagestore_fail_alloc(m->ps, 1 + (op >> 3) % 12);
        return;
    }
    tt_pagestore_fail_alloc(m->ps, 0);
    if (op & 0x40) {
        check_all(m);
    }
}

void pagestore_model_run(const uint8_t *bytes, size_t len,
                         PagestoreModelStats *stats)
{
    PagestoreModelStats unused;
    Model *m = g_new0(Model, 1);

    m->in = bytes;
    m->end = bytes + len;
    m->stats = stats ? stats : &unused;
    m->ps = tt_pagestore_new();
    m->program = next_byte(m);
    make_patterns(m);
    while (m->in < m->end) {
        operate(m, next_byte(m));
    }
    check_all(m);
    while (m->n_nodes) {
        tt_pagestore_delete(m->ps, m->node[--m->n_nodes].id);
    }
    tt_pagestore_check(m->ps);
    g_assert_cmpuint(tt_pagestore_versions(m->ps), ==, 0);
    tt_pagestore_free(m->ps);
    g_free(m);
}
