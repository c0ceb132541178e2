/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Call stacks from calls and returns. See tt-callstack.h. */
#include "plugins-tt/stack/tt-callstack.h"

#include <assert.h>
#include <glib.h>

#define PAIRS_FACTOR 8          /* blocks of a node, on average, before they are merged */
#define NEAR (64u << 10)        /* a stack pointer that moves farther is on another stack, */
#define CLOSE (8u << 10)        /* or, where stacks are small, already this far */
#define FRAMES_MAX 4            /* interrupts, each of the handler of the one before */

struct TtCallNode {
    TtCallNode *parent;         /* NULL: the bottom */
    uint64_t function;
    uint32_t depth;
    uint64_t slot;              /* of the last call that led there; 0: none did */
    bool is_entry;              /* of the kernel, or of an interrupt */
};

typedef struct Words {          /* a key, and the first of what has it */
    uint64_t a, b;
} Words;

/* A call, by the place of its return address. */
typedef struct Call {
    Words at;                   /* address space, place */
    uint64_t back;              /* that address */
    uint64_t from_slot;         /* that of the caller's own call; 0: it is not known */
    TtCallNode *from, *to;
    bool is_over;               /* it has returned, or never will */
} Call;

typedef struct Pair {
    Words key;                  /* of the node, and the block */
    TtCallNode *node;
    uint64_t count;
} Pair;

typedef struct Place {
    TtCallNode *node;           /* NULL: none */
    uint64_t slot, space, pc;
} Place;

typedef struct Vcpu {
    TtCallNode *node;
    uint64_t slot;              /* of the call that led there; 0: it is not known */
    TtCallBlock *block;         /* NULL: none began yet */
    uint64_t space;
    Place host;                 /* behind the vmrun whose guest it executes */
} Vcpu;

struct TtCallstack {
    const TtCallVcpu *ops;
    void *opaque;
    uint32_t max_nodes;
    TtCallNode bottom;
    GHashTable *nodes;          /* of TtCallNode, its own key */
    GHashTable *calls;          /* of Call, its own key */
    GHashTable *pairs;          /* of Pair, its own key */
    Vcpu vcpus[TT_CALLSTACK_VCPUS_MAX];
};

/* ---- tables ---- */

static guint mix(uint64_t a, uint64_t b)
{
    return ((a ^ b * 0x9e3779b97f4a7c15ull) * 0xbf58476d1ce4e5b9ull) >> 32;
}

static guint node_hash(gconstpointer p)
{
    const TtCallNode *n = p;

    return mix((uintptr_t)n->parent, n->function + n->is_entry);
}

static gboolean node_equal(gconstpointer p, gconstpointer q)
{
    const TtCallNode *a = p, *b = q;

    return a->parent == b->parent && a->function == b->function &&
        a->is_entry == b->is_entry;
}

static guint words_hash(gconstpointer p)
{
    const Words *w = p;

    return mix(w->a, w->b);
}

static gboolean words_equal(gconstpointer p, gconstpointer q)
{
    const Words *x = p, *y = q;

    return x->a == y->a && x->b == y->b;
}

TtCallstack *tt_callstack_new(const TtCallVcpu *vcpu, void *opaque, uint32_t max_nodes)
{
    TtCallstack *s = g_new0(TtCallstack, 1);

    assert(max_nodes > 0);
    s->ops = vcpu;
    s->opaque = opaque;
    s->max_nodes = max_nodes;
    s->nodes = g_hash_table_new_full(node_hash, node_equal, g_free, NULL);
    s->calls = g_hash_table_new_full(words_hash, words_equal, g_free, NULL);
    s->pairs = g_hash_table_new_full(words_hash, words_equal, g_free, NULL);
    for (unsigned i = 0; i < TT_CALLSTACK_VCPUS_MAX; i++) {
        s->vcpus[i].node = &s->bottom;
    }
    return s;
}

void tt_callstack_free(TtCallstack *s)
{
    if (s) {
        g_hash_table_destroy(s->pairs);
        g_hash_table_destroy(s->calls);
        g_hash_table_destroy(s->nodes);
        g_free(s);
    }
}

/* ---- the tree ---- */

/* @parent itself if there is no room. */
static TtCallNode *below(TtCallstack *s, TtCallNode *parent, uint64_t function,
                         bool is_entry)
{
    TtCallNode key = {
        .parent = parent, .function = function, .depth = parent->depth + 1,
        .is_entry = is_entry,
    };
    TtCallNode *n;

    /* What enters must be there, for what leaves; so it may be deeper. */
    if (parent->depth >= TT_CALLSTACK_DEPTH * (is_entry ? 2 : 1)) {
        return parent;
    }
    n = g_hash_table_lookup(s->nodes, &key);
    if (!n) {
        if (g_hash_table_size(s->nodes) >= s->max_nodes) {
            return parent;
        }
        n = g_new(TtCallNode, 1);
        *n = key;
        g_hash_table_add(s->nodes, n);
    }
    return n;
}

static bool is_high(uint64_t addr)
{
    return addr >> 63;
}

static uint64_t space_of(const Vcpu *v, uint64_t slot)
{
    return is_high(slot) ? 0 : v->space;
}

/* ---- how it goes on ---- */

static Call *call_at(const TtCallstack *s, const Vcpu *v, uint64_t slot)
{
    const Words key = { space_of(v, slot), slot };

    return slot ? g_hash_table_lookup(s->calls, &key) : NULL;
}

/* That led to @node. NULL: it is not known, or is not there any more. */
static Call *call_to(const TtCallstack *s, const Vcpu *v, TtCallNode *node, uint64_t slot)
{
    Call *c = call_at(s, v, slot);

    return c && c->to == node && !c->is_over ? c : NULL;
}

static void stand(Vcpu *v, TtCallNode *node, uint64_t slot)
{
    v->node = node;
    v->slot = slot;
}

static void return_from(Vcpu *v, Call *c)
{
    c->is_over = true;
    stand(v, c->from, c->from_slot);
}

/* Is a return address of @c's callers at @sp, or shortly above? Then large frames lie
 * between. */
static bool is_same_stack(const TtCallstack *s, const Vcpu *v, const Call *c, uint64_t sp)
{
    for (unsigned i = 0; c && c->at.b != sp && i < TT_CALLSTACK_DEPTH; i++) {
        if (c->from_slot > sp) {
            return c->from_slot - sp < NEAR;
        }
        c = c->from_slot > c->at.b ? call_to(s, v, c->from, c->from_slot) : NULL;
    }
    return c && c->at.b == sp;
}

/* Calls whose return address is not on the stack any more: a longjmp, or a kernel that fills
 * the CPU's return buffer. */
static void drop_dead(TtCallstack *s, Vcpu *v, uint64_t sp)
{
    while (v->slot && v->slot <= sp) {
        Call *c = call_to(s, v, v->node, v->slot);

        if (!c || (sp - v->slot >= NEAR && !is_same_stack(s, v, c, sp))) {
            break;
        }
        return_from(v, c);
    }
}

static gboolean call_is_over(gpointer key, gpointer value, gpointer unused)
{
    return ((const Call *)value)->is_over;
}

/* One that is over is kept as long as there is room: after a vfork, two return from it. */
static void make_room(TtCallstack *s)
{
    if (g_hash_table_size(s->calls) < s->max_nodes) {
        return;
    }
    g_hash_table_foreach_remove(s->calls, call_is_over, NULL);
    if (g_hash_table_size(s->calls) > s->max_nodes / 2) {
        g_hash_table_remove_all(s->calls);
    }
}

static void call(TtCallstack *s, Vcpu *v, uint64_t pc, uint64_t sp)
{
    Call *c;

    if (pc == v->block->behind) {       /* it only asks where it is */
        return;
    }
    drop_dead(s, v, sp);
    make_room(s);
    c = g_new(Call, 1);
    *c = (Call) {
        .at = { space_of(v, sp), sp }, .back = v->block->behind,
        .from_slot = v->slot, .from = v->node, .to = below(s, v->node, pc, false),
    };
    if (c->to != v->node) {
        c->to->slot = sp;
    }
    stand(v, c->to, sp);
    g_hash_table_replace(s->calls, c, c);
}

/* An address has 2 bytes, 4, or 8: where there is one of less bytes, another is a call of
 * long ago. The innermost call may have had its return address moved (Linux does at the
 * entry of exceptions), or changed (a retpoline does). */
static Call *call_of_return(const TtCallstack *s, const Vcpu *v, uint64_t pc, uint64_t sp)
{
    uint64_t slot = sp - v->block->pops;
    Call *all[] = {
        call_at(s, v, slot - 2), call_at(s, v, slot - 4), call_at(s, v, slot - 8),
    };
    Call *inner;

    for (unsigned i = 0; i < G_N_ELEMENTS(all); i++) {
        if (all[i] && all[i]->back == pc) {
            return all[i];
        }
    }
    inner = call_to(s, v, v->node, v->slot);
    if (inner && inner->back == pc) {
        return inner;
    }
    for (unsigned i = 0; i < G_N_ELEMENTS(all); i++) {
        if (all[i] && all[i]->to == v->node && !all[i]->is_over) {
            return all[i];
        }
    }
    return NULL;
}

/* A retpoline: what it goes to has been called, in its place, since nothing of it is left on
 * the stack. */
static void replace(TtCallstack *s, Vcpu *v, uint64_t pc, uint64_t sp)
{
    Call *c = v->slot == sp ? call_to(s, v, v->node, sp) : NULL;

    if (c && c->from != c->to) {
        c->to = below(s, c->from, pc, false);
        if (c->to != c->from) {
            c->to->slot = sp;
        }
        v->node = c->to;
    }
}

/* A return that is not known is a jump (the end of a signal handler) if the caller's return
 * address lies shortly above. */
static void go_back(TtCallstack *s, Vcpu *v, uint64_t pc, uint64_t sp)
{
    Call *c = call_of_return(s, v, pc, sp);
    bool is_changed = c && c->back != pc;

    if (c) {
        return_from(v, c);
    } else if (v->slot < sp || v->slot - sp >= (is_high(sp) ? CLOSE : NEAR)) {
        stand(v, &s->bottom, 0);
    }
    if (is_changed) {
        replace(s, v, pc, sp);
    }
}

static void leave(TtCallstack *s, Vcpu *v, uint64_t pc, uint64_t sp)
{
    bool to_low = !is_high(pc) && is_high(v->block->at);
    TtCallNode *n = v->node;
    Call *c;

    while (n->parent && !(n->is_entry && !(to_low && is_high(n->parent->function)))) {
        n = n->parent;
    }
    n = n->parent ?: &s->bottom;
    if (to_low) {
        v->space = s->ops->space(s->opaque);
    }
    /* Of another thread in the same function, it is the place of another call; a longjmp may
     * have left it below. */
    c = call_to(s, v, n, n->slot);
    stand(v, n, c && (n->slot + CLOSE > sp || is_same_stack(s, v, c, sp)) ? n->slot : 0);
}

/* Does what was not asked for begin at @pc? */
static bool is_fault(const TtCallBlock *last, uint64_t pc, bool is_whole)
{
    if (is_whole && (last->kind == TT_CALL_RESUME || last->kind == TT_CALL_GUEST)) {
        return false;
    }
    if (!is_high(last->at) && is_high(pc)) {
        return true;
    }
    return (!is_whole || last->kind == TT_CALL_NEXT) &&
        (pc < last->at || pc > last->behind);
}

static void enter(TtCallstack *s, Vcpu *v, uint64_t pc)
{
    stand(v, below(s, v->node, pc, true), 0);
}

static void enter_guest(TtCallstack *s, Vcpu *v, uint64_t pc)
{
    v->host = (Place) { v->node, v->slot, v->space, v->block->behind };
    v->space = s->ops->space(s->opaque);
    enter(s, v, pc);
}

/* False: that is not the end of a guest. */
static bool leave_guest(Vcpu *v, uint64_t pc)
{
    if (!v->host.node || pc != v->host.pc) {
        return false;
    }
    stand(v, v->host.node, v->host.slot);
    v->space = v->host.space;
    v->host.node = NULL;
    return true;
}

static uint64_t sp_of(const TtCallstack *s, const uint64_t *sp)
{
    return sp ? *sp : s->ops->sp(s->opaque);
}

/* @sp: NULL: that of now. */
static void go_on(TtCallstack *s, Vcpu *v, uint64_t pc, bool is_whole, const uint64_t *sp)
{
    TtCallKind kind = is_whole ? v->block->kind : TT_CALL_NEXT;

    if (kind == TT_CALL_ENTER || is_fault(v->block, pc, is_whole)) {
        enter(s, v, pc);
    } else if (kind == TT_CALL_CALL) {
        call(s, v, pc, sp_of(s, sp));
    } else if (kind == TT_CALL_RETURN) {
        go_back(s, v, pc, sp_of(s, sp));
    } else if (kind == TT_CALL_LEAVE || kind == TT_CALL_RESUME) {
        leave(s, v, pc, sp_of(s, sp));
    } else if (kind == TT_CALL_GUEST && pc != v->block->behind) {
        enter_guest(s, v, pc);
    }
}

/* First to where it was interrupted, then into each handler. */
static void move(TtCallstack *s, Vcpu *v, const TtCallBlock *b, uint64_t n,
                 uint64_t n_interrupts)
{
    bool is_whole = n >= v->block->n;
    uint64_t pc[FRAMES_MAX], sp;
    unsigned i = 0;

    if (leave_guest(v, b->at)) {
        return;
    }
    if (!n_interrupts) {
        go_on(s, v, b->at, is_whole, NULL);
        return;
    }
    sp = s->ops->sp(s->opaque);
    while (i < MIN(n_interrupts, FRAMES_MAX) &&
           s->ops->interrupted(s->opaque, i ? 0 : b->at, &pc[i], &sp)) {
        i++;
    }
    if (!i) {
        stand(v, &s->bottom, 0);
        return;
    }
    go_on(s, v, pc[i - 1], is_whole, &sp);
    while (--i) {
        enter(s, v, pc[i - 1]);
    }
    enter(s, v, b->at);
}

/* ---- counting ---- */

static Pair *pair_of(TtCallstack *s, TtCallNode *node, uint64_t block)
{
    Words key = { (uintptr_t)node, block };
    Pair *p = g_hash_table_lookup(s->pairs, &key);

    if (!p && g_hash_table_size(s->pairs) / PAIRS_FACTOR >= s->max_nodes) {
        key.b = node->function;
        p = g_hash_table_lookup(s->pairs, &key);
    }
    if (!p) {
        p = g_new(Pair, 1);
        *p = (Pair) { .key = key, .node = node };
        g_hash_table_add(s->pairs, p);
    }
    return p;
}

static void add(TtCallstack *s, Vcpu *v, uint64_t n)
{
    TtCallBlock *b = v->block;

    if (b && n) {
        if (b->node != v->node) {
            b->node = v->node;
            b->count = &pair_of(s, v->node, b->at)->count;
        }
        *b->count += n;
    }
}

void tt_callstack_block(TtCallstack *s, unsigned vcpu, TtCallBlock *b, uint64_t n,
                        uint64_t n_interrupts)
{
    Vcpu *v = &s->vcpus[vcpu];

    assert(vcpu < TT_CALLSTACK_VCPUS_MAX);
    add(s, v, n);
    if (v->block) {
        move(s, v, b, n, n_interrupts);
    } else {
        v->space = s->ops->space(s->opaque);
    }
    v->block = b;
}

void tt_callstack_end(TtCallstack *s, unsigned vcpu, uint64_t n)
{
    assert(vcpu < TT_CALLSTACK_VCPUS_MAX);
    add(s, &s->vcpus[vcpu], n);
}

void tt_callstack_each(const TtCallstack *s,
                       void (*found)(void *opaque, const uint64_t *functions,
                                     unsigned depth, uint64_t block, uint64_t count),
                       void *opaque)
{
    uint64_t functions[2 * TT_CALLSTACK_DEPTH + 1];
    GHashTableIter iter;
    gpointer one;

    g_hash_table_iter_init(&iter, s->pairs);
    while (g_hash_table_iter_next(&iter, &one, NULL)) {
        const Pair *p = one;

        for (const TtCallNode *n = p->node; n->parent; n = n->parent) {
            functions[n->depth - 1] = n->function;
        }
        found(opaque, functions, p->node->depth, p->key.b, p->count);
    }
}
