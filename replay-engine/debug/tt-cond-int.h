/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The parts of a condition: tokens (tt-cond-lex.c), the grammar (tt-cond-parse.c), which has
 * a builder make something of what it reads: a tree (tt-cond-tree.c), which tt-cond.c
 * evaluates, or a text without types (tt-lower-build.c).
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

/* Where a piece of a text with addresses stands in the one with names. */
typedef struct TtCondPiece {
    size_t at, original;            /* bytes from the beginnings */
} TtCondPiece;

typedef struct TtCondLexer {
    const char *text, *at;          /* all; after the token */
    const TtCondPiece *pieces;      /* ascending, from 0 on: complaints are about the */
    size_t n_pieces;                /* original; 0: the text is that itself */
    const char *start;              /* of the token */
    const char *about;              /* complaints are about this place; NULL: about start */
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
void tt_cond_lex_fail_large(TtCondLexer *l, const char *what);

/* ---- types ---- */
typedef struct TtCondType {
    uint8_t bytes;                  /* 1, 2, 4, 8; 0: void */
    bool is_signed, is_bool;
    uint8_t stars;                  /* a pointer to ... to that */
    uint32_t id;                    /* instead of bytes: of a table of types; 0: none */
} TtCondType;

/* A type's name, of one or more words, is at the token: it is read. */
bool tt_cond_type(TtCondLexer *l, TtCondType *type);
/* Does the word at @at, of @len bytes, begin one, or is it "at"? */
bool tt_cond_is_reserved(const char *at, size_t len);

static inline unsigned tt_cond_type_bytes(TtCondType t)
{
    return t.stars ? 8 : t.bytes;
}

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

/* Register @name, without $, of @len bytes. */
bool tt_cond_find_reg(const char *name, size_t len, TtCondNode *node);

struct TtCond {
    TtCondNode nodes[TT_COND_NODES_MAX];
    uint16_t n_nodes, root;
    bool has_at;
    TtCondKind kind;
    uint64_t places[TT_COND_PLACES_MAX];
    size_t n_places;
};

TtStatus tt_cond_eval_node(const TtCond *c, unsigned node, const TtCondSource *source,
                           uint64_t *value);
/* Sets kind and places. @at: node of the address after "at", or -1. */
TtStatus tt_cond_classify(TtCond *c, int at, TtDiag *diag);

/* As tt_cond_parse. A complaint names places of the original. */
TtStatus tt_cond_parse_pieces(const char *text, const TtCondPiece *pieces, size_t n_pieces,
                              TtCond **out, TtDiag *diag);

/* ---- operators with two operands ---- */
/* How strongly it binds; 0: it is none. */
int tt_cond_strength(int op);
TtCondType tt_cond_promoted(TtCondType t);
/* Of both operands; pointers are compared as addresses. */
TtCondType tt_cond_common(TtCondType a, TtCondType b);
/*
 * tt_cond_result: the type of @a @op @b, and the one that both get first
 * *@both: .bytes 0: they stay as they are. False, and a complaint: they are no numbers; what
 * + and - make of pointers is the caller's.
 */
bool tt_cond_result(TtCondLexer *l, int op, TtCondType a, TtCondType b, TtCondType *both,
                    TtCondType *result);

/* ---- the grammar ---- */
typedef unsigned TtCondValue;       /* an expression: what it is, the builder knows */
#define TT_COND_NO_VALUE UINT32_MAX

/*
 * What the grammar has made of the parts of an expression, operands first. It calls only
 * while nothing is wrong. A builder complains with tt_cond_lex_fail; what it returns then
 * does not count. It moves the lexer only in @type; the others find it at the token that
 * they are about, or behind what an operator is of, with complaints about the operator.
 */
typedef struct TtCondBuilder {
    TtCondValue (*number)(void *opaque, TtCondType type, uint64_t number);
    TtCondValue (*reg)(void *opaque, const TtCondNode *reg);
    TtCondValue (*name)(void *opaque);              /* the token */
    /* The type whose name begins at the token is read. False: none does, or it was
     * complained. */
    bool (*type)(void *opaque, TtCondType *type);
    TtCondValue (*cast)(void *opaque, TtCondType type, TtCondValue a);
    TtCondValue (*unary)(void *opaque, int op, TtCondValue a);      /* * & ! ~ - + */
    TtCondValue (*binary)(void *opaque, int op, TtCondValue a, TtCondValue b);
    TtCondValue (*choose)(void *opaque, TtCondValue test, TtCondValue a, TtCondValue b);
    /* The token is its name; @by_pointer: "->" */
    TtCondValue (*member)(void *opaque, TtCondValue a, bool by_pointer);
    /* NULL: sizeof is a name. */
    TtCondValue (*size_of)(void *opaque, TtCondValue a);
    TtCondValue (*size_of_type)(void *opaque, TtCondType type);
    /* All before or, if @is_address, behind "at"; or NULL. */
    TtCondValue (*whole)(void *opaque, TtCondValue a, bool is_address);
} TtCondBuilder;

/*
 * tt_cond_read: "EXPRESSION", "EXPRESSION at ADDRESS" or "at ADDRESS", up to the end
 * *@what and *@at: the parts; one that is not there is TT_COND_NO_VALUE. @at NULL: there
 * is to be an expression alone. Returns @l's status.
 */
TtStatus tt_cond_read(TtCondLexer *l, const TtCondBuilder *b, void *opaque,
                      TtCondValue *what, TtCondValue *at);

#endif
