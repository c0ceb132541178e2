/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the grammar builds of a condition without types: a tree. Operands get C's usual
 * conversions here, as casts, so that an operator's two sides have one type when it is
 * evaluated.
 */
#include "debug/tt-cond.h"
#include "tt-cond-int.h"

#include <glib.h>

typedef struct Tree {
    TtCondLexer l;
    TtCond *c;
} Tree;

#define NONE TT_COND_NO_VALUE   /* no node: something is wrong, and it was said */

static TtCondValue add(Tree *t, TtCondNode node)
{
    if (t->l.status != TT_OK) {
        return NONE;
    }
    if (t->c->n_nodes == TT_COND_NODES_MAX) {
        tt_cond_lex_fail_large(&t->l, "operators");
        return NONE;
    }
    t->c->nodes[t->c->n_nodes] = node;
    return t->c->n_nodes++;
}

static TtCondType type_of(const Tree *t, TtCondValue node)
{
    return t->c->nodes[node].type;
}

/* ---- types ---- */

static const TtCondType int_type = { 4, true }, s64_type = { 8, true };

static TtCondValue cast(Tree *tree, TtCondValue a, TtCondType type)
{
    return add(tree, (TtCondNode) { .kind = NODE_CAST, .type = type, .a = a });
}

/* How far the next element is; a void * is counted in bytes, as by gdb. */
static uint64_t step_of(TtCondType t)
{
    return t.stars > 1 ? 8 : MAX(t.bytes, 1);
}

/* ---- operands ---- */

static TtCondValue make_number(void *opaque, TtCondType type, uint64_t number)
{
    return add(opaque, (TtCondNode) { .kind = NODE_CONST, .number = number, .type = type });
}

static TtCondValue make_reg(void *opaque, const TtCondNode *reg)
{
    return add(opaque, *reg);
}

static TtCondValue make_name(void *opaque)
{
    TtCondLexer *l = &((Tree *)opaque)->l;

    tt_cond_lex_fail(l, "'%.*s' is not known here: registers are written as $rax, and names "
                     "of a program need its symbols", (int)MIN(l->at - l->start, 60),
                     l->start);
    return NONE;
}

static bool take_type(void *opaque, TtCondType *type)
{
    return tt_cond_type(&((Tree *)opaque)->l, type);
}

/* ---- operators with one operand ---- */

static TtCondValue make_cast(void *opaque, TtCondType type, TtCondValue a)
{
    Tree *tree = opaque;

    if (!type.bytes && !type.stars) {
        tt_cond_lex_fail(&tree->l, "nothing can be cast to void");
    }
    return cast(tree, a, type);
}

static TtCondValue read_at(Tree *tree, TtCondValue addr)
{
    TtCondType t = type_of(tree, addr);

    if (!t.stars || (t.stars == 1 && !t.bytes)) {
        tt_cond_lex_fail(&tree->l, "* needs an address with a type: *(u32 *)ADDRESS");
        return NONE;
    }
    t.stars--;
    return add(tree, (TtCondNode) { .kind = NODE_READ, .type = t, .a = addr });
}

static TtCondValue address_of(Tree *tree, TtCondValue a)
{
    const TtCondNode *n = &tree->c->nodes[a];
    TtCondType t = n->type;

    if (n->kind != NODE_READ) {
        tt_cond_lex_fail(&tree->l, "& needs an operand in memory");
        return NONE;
    }
    t.stars++;
    return cast(tree, n->a, t);
}

static TtCondValue make_unary(void *opaque, int op, TtCondValue a)
{
    Tree *tree = opaque;
    TtCondType t = type_of(tree, a);

    if (op == '*') {
        return read_at(tree, a);
    }
    if (op == '&') {
        return address_of(tree, a);
    }
    if (op != '!' && t.stars) {
        tt_cond_lex_fail(&tree->l, "'%c' needs a number, not a pointer", op);
    }
    return add(tree, (TtCondNode) { .kind = NODE_UNARY, .op = op, .a = a,
                                    .type = op == '!' ? int_type : tt_cond_promoted(t) });
}

static TtCondValue make_member(void *opaque, TtCondValue a, bool by_pointer)
{
    tt_cond_lex_fail(&((Tree *)opaque)->l, "a member needs the type of what is before it, "
                     "which only a name from debug information has");
    return NONE;
}

/* ---- operators with two operands ---- */

static TtCondValue binary(Tree *tree, int op, TtCondType type, TtCondValue a, TtCondValue b)
{
    return add(tree, (TtCondNode) { .kind = NODE_BINARY, .op = op, .type = type,
                                    .number = 1, .a = a, .b = b });
}

/* One of the operands is a pointer. */
static TtCondValue sum(Tree *tree, int op, TtCondValue a, TtCondValue b)
{
    TtCondType t = type_of(tree, a), u = type_of(tree, b);
    TtCondValue node;

    if (!t.stars && u.stars && op == '+') {
        return sum(tree, op, b, a);
    }
    if (!t.stars || (u.stars && (op == '+' || step_of(t) != step_of(u)))) {
        tt_cond_lex_fail(&tree->l, "these pointers cannot be added or subtracted");
        return NONE;
    }
    node = binary(tree, u.stars ? OP2('-', 'p') : op, u.stars ? s64_type : t, a,
                  u.stars ? b : cast(tree, b, s64_type));
    if (node != NONE) {
        tree->c->nodes[node].number = step_of(t);
    }
    return node;
}

static TtCondValue make_binary(void *opaque, int op, TtCondValue a, TtCondValue b)
{
    Tree *tree = opaque;
    TtCondType t = type_of(tree, a), u = type_of(tree, b), both, result;

    if ((op == '+' || op == '-') && (t.stars || u.stars)) {
        return sum(tree, op, a, b);
    }
    if (!tt_cond_result(&tree->l, op, t, u, &both, &result)) {
        return NONE;
    }
    if (both.bytes) {
        a = cast(tree, a, both);
        b = cast(tree, b, both);
    }
    return binary(tree, op, result, a, b);
}

static TtCondValue make_choice(void *opaque, TtCondValue test, TtCondValue a, TtCondValue b)
{
    Tree *tree = opaque;
    TtCondType t = type_of(tree, a), u = type_of(tree, b);

    if (!t.stars || !u.stars || memcmp(&t, &u, sizeof(t))) {
        t = tt_cond_common(t, u);
        a = cast(tree, a, t);
        b = cast(tree, b, t);
    }
    return add(tree, (TtCondNode) { .kind = NODE_TEST, .type = t, .a = a, .b = b,
                                    .c = test });
}

/* ---- all of it ---- */

static const TtCondBuilder builder = {
    .number = make_number, .reg = make_reg, .name = make_name, .type = take_type,
    .cast = make_cast, .unary = make_unary, .binary = make_binary, .choose = make_choice,
    .member = make_member,
};

static TtStatus read_all(Tree *tree, TtDiag *diag)
{
    TtCondValue root, at;
    TtStatus s = tt_cond_read(&tree->l, &builder, tree, &root, &at);

    tree->c->has_at = at != NONE;
    if (s == TT_OK && root == NONE) {       /* "at ADDRESS": each time */
        root = make_number(tree, int_type, 1);
        s = tree->l.status;
    }
    if (s != TT_OK) {
        return s;
    }
    tree->c->root = root;
    return tt_cond_classify(tree->c, at, diag);
}

TtStatus tt_cond_parse_pieces(const char *text, const TtCondPiece *pieces, size_t n_pieces,
                              TtCond **out, TtDiag *diag)
{
    Tree tree = { .c = g_new0(TtCond, 1) };
    TtStatus s;

    tt_cond_lex_init(&tree.l, text, diag);
    tree.l.pieces = pieces;
    tree.l.n_pieces = n_pieces;
    s = tree.l.status == TT_OK ? read_all(&tree, diag) : tree.l.status;
    *out = s == TT_OK ? tree.c : NULL;
    if (s != TT_OK) {
        tt_cond_free(tree.c);
    }
    return s;
}

TtStatus tt_cond_parse(const char *text, TtCond **out, TtDiag *diag)
{
    return tt_cond_parse_pieces(text, NULL, 0, out, diag);
}

void tt_cond_free(TtCond *c)
{
    g_free(c);
}
