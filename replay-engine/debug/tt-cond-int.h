/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The parts of a condition: tokens (tt-cond-lex.c), which tt-cond-parse.c makes a tree
 * of, which tt-cond.c evaluates.
 */
#ifndef TT_COND_INT_H
#define TT_COND_INT_H

#include "tt-cond.h"

/* ---- tokens ---- */
typedef enum TtCondToken {
    TOKEN_END,
    TOKEN_NUMBER,
    TOKEN_REGISTER,
    TOKEN_WORD,
    TOKEN_OPERATOR,
    TOKEN_BAD,              /* diag says why */
} TtCondToken;

/* Operators, by their character, or two of them. */
#define OP2(a, b) ((a) << 8 | (b))

typedef struct TtCondLexer {
    const char *text, *at;          /* all; after the token */
    const char *start;              /* of the token */
    TtCondToken token;
    uint64_t number;
    bool is_unsigned, is_long;      /* its suffix, or its size: C's rule */
    bool is_octal_or_hex;
    int op;
    TtDiag *diag;                   /* or NULL */
    TtStatus status;
} TtCondLexer;

void tt_cond_lex_init(TtCondLexer *l, const char *text, TtDiag *diag);
void tt_cond_lex_next(TtCondLexer *l);
bool tt_cond_lex_is_word(const TtCondLexer *l, const char *word);
/* The first complaint stays. Returns TT_ERR_FORMAT. */
TtStatus tt_cond_lex_fail(TtCondLexer *l, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* ---- types ---- */
typedef struct TtCondType {
    uint8_t bytes;                  /* 1, 2, 4, 8; 0: void */
    bool is_signed, is_bool;
    uint8_t stars;                  /* a pointer to ... to that */
} TtCondType;

/* A type's name, of one or more words, is at the token: it is read. */
bool tt_cond_type(TtCondLexer *l, TtCondType *type);
/* Does the word at @at, of @len bytes, begin one, or is it "at"? */
bool tt_cond_is_reserved(const char *at, size_t len);

static inline unsigned tt_cond_type_bytes(TtCondType t)
{
    return t.stars ? 8 : t.bytes;
}

/* How strongly an operator with two operands binds; 0: it is none. */
int tt_cond_strength(int op);

/* ---- the tree ---- */
typedef enum TtCondNodeKind {
    NODE_CONST, NODE_REG, NODE_READ, NODE_CAST, NODE_UNARY, NODE_BINARY, NODE_TEST,
} TtCondNodeKind;

typedef struct TtCondNode {
    TtCondNodeKind kind;
    TtCondType type;                /* of its value */
    int op;
    uint64_t number;                /* CONST; BINARY of pointers: their step */
    TtCondReg reg;
    uint8_t shift;                  /* REG: bits that it begins with */
    uint16_t a, b, c;               /* operands: nodes before this one */
} TtCondNode;

struct TtCond {
    TtCondNode nodes[TT_COND_NODES_MAX];
    uint16_t n_nodes, root;
    bool has_at;
    TtCondKind kind;
    uint64_t places[TT_COND_PLACES_MAX];
    size_t n_places;
};

/* Register @name, without $, of @len bytes. */
bool tt_cond_find_reg(const char *name, size_t len, TtCondNode *node);
TtStatus tt_cond_eval_node(const TtCond *c, unsigned node, const TtCondSource *source,
                           uint64_t *value);
/* Sets kind and places. @at: node of the address after "at", or -1. */
TtStatus tt_cond_classify(TtCond *c, int at, TtDiag *diag);

#endif
