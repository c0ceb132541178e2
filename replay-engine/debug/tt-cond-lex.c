/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Tokens of a condition, and the names of its types and registers.
 */
#include "debug/tt-cond.h"
#include "tt-cond-int.h"

#include <glib.h>
#include <stdarg.h>
#include <stdio.h>

/* In what the user wrote. */
static size_t place(const TtCondLexer *l)
{
    size_t at = (l->about ?: l->start) - l->text, n = l->n_pieces;

    while (n && l->pieces[n - 1].at > at) {
        n--;
    }
    return n ? l->pieces[n - 1].original : at;
}

TtStatus tt_cond_lex_fail(TtCondLexer *l, const char *fmt, ...)
{
    char said[160];
    va_list ap;

    if (l->status != TT_OK) {
        return l->status;
    }
    va_start(ap, fmt);
    vsnprintf(said, sizeof(said), fmt, ap);
    va_end(ap);
    tt_replace_controls(said, '?');
    l->token = TOKEN_BAD;
    l->status = tt_fail(l->diag, TT_ERR_FORMAT, "%s (at character %zu)", said,
                        place(l) + 1);
    return l->status;
}

void tt_cond_lex_fail_large(TtCondLexer *l, const char *what)
{
    if (l->status == TT_OK) {
        l->token = TOKEN_BAD;
        l->status = tt_fail(l->diag, TT_ERR_LIMIT, "the condition has too many %s", what);
    }
}

static bool is_word_start(char c)
{
    return g_ascii_isalpha(c) || c == '_';
}

static bool is_word(char c)
{
    return g_ascii_isalnum(c) || c == '_';
}

/* ---- numbers ---- */

static void take_suffix(TtCondLexer *l)
{
    unsigned n_l = 0, n_u = 0;

    for (; is_word(*l->at); l->at++) {
        if (*l->at == 'u' || *l->at == 'U') {
            n_u++;
        } else if (*l->at == 'l' || *l->at == 'L') {
            n_l++;
        } else {
            n_u = 9;
        }
    }
    if (n_u > 1 || n_l > 2) {
        tt_cond_lex_fail(l, "'%.*s' is not a number", (int)MIN(l->at - l->start, 60),
                         l->start);
    }
    l->is_unsigned = n_u;
    l->is_long = n_l;
}

/* C's rule: the first of int, unsigned, long, unsigned long that it fits in; of
 * decimal numbers no unsigned one, unless it fits in no other. */
static void choose_type(TtCondLexer *l)
{
    if (l->number > UINT32_MAX || (!l->is_unsigned && !l->is_octal_or_hex &&
                                   l->number > INT32_MAX)) {
        l->is_long = true;
    }
    if (l->is_long ? l->number > INT64_MAX :
        l->number > INT32_MAX && l->is_octal_or_hex) {
        l->is_unsigned = true;
    }
}

static void take_number(TtCondLexer *l)
{
    unsigned base = 10;
    bool any = false;

    l->token = TOKEN_NUMBER;
    l->number = 0;
    if (l->at[0] == '0' && (l->at[1] == 'x' || l->at[1] == 'X')) {
        base = 16;
        l->at += 2;
    } else if (l->at[0] == '0' && g_ascii_isdigit(l->at[1])) {
        base = 8;
    }
    l->is_octal_or_hex = base != 10;
    for (; g_ascii_isxdigit(*l->at); l->at++, any = true) {
        unsigned digit = g_ascii_xdigit_value(*l->at);

        if (digit >= base) {
            break;
        }
        if (l->number > (UINT64_MAX - digit) / base) {
            tt_cond_lex_fail(l, "a number is larger than 64 bits");
            return;
        }
        l->number = l->number * base + digit;
    }
    take_suffix(l);
    if (l->at[0] == '.' && g_ascii_isdigit(l->at[1])) {
        tt_cond_lex_fail(l, "floating point cannot be used: only integers and pointers can");
    }
    if (l->status == TT_OK && !any) {
        tt_cond_lex_fail(l, "0x must be followed by hex digits");
    }
    choose_type(l);
}

/* 'a', '\n', '\0', '\x41' */
static void take_char(TtCondLexer *l)
{
    static const char from[] = "ntr0\\'\"", to[] = "\n\t\r\0\\'\"";
    const char *p = l->at + 1, *known;

    l->token = TOKEN_NUMBER;
    l->is_unsigned = l->is_long = l->is_octal_or_hex = false;
    if (p[0] == '\\' && p[1] == 'x' && g_ascii_isxdigit(p[2]) &&
        g_ascii_isxdigit(p[3])) {
        l->number = (int8_t)(g_ascii_xdigit_value(p[2]) << 4 |
                             g_ascii_xdigit_value(p[3]));
        p += 4;
    } else if (p[0] == '\\' && p[1] && (known = strchr(from, p[1]))) {
        l->number = to[known - from];
        p += 2;
    } else if (p[0] >= ' ' && p[0] < 127 && p[0] != '\\' && p[0] != '\'') {
        l->number = *p++;
    }
    if (p == l->at + 1 || *p != '\'') {
        tt_cond_lex_fail(l, "a character is written as 'a', '\\n' or '\\x41'");
        return;
    }
    l->at = p + 1;
}

/* ---- operators ---- */

static void take_operator(TtCondLexer *l)
{
    static const char *const twos[] = {
        "==", "!=", "<=", ">=", "<<", ">>", "&&", "||", "->",
    };

    l->token = TOKEN_OPERATOR;
    if (!strncmp(l->at, "++", 2) || !strncmp(l->at, "--", 2)) {
        tt_cond_lex_fail(l, "'%.2s' would change something: write a space between", l->at);
        return;
    }
    for (size_t i = 0; i < G_N_ELEMENTS(twos); i++) {
        if (!strncmp(l->at, twos[i], 2)) {
            l->op = OP2(twos[i][0], twos[i][1]);
            l->at += 2;
            return;
        }
    }
    if (*l->at == '=') {
        tt_cond_lex_fail(l, "'=' is not a comparison: write ==");
    } else if (!strchr("+-*/%&|^~!<>?:()[].", *l->at)) {
        tt_cond_lex_fail(l, "'%.*s' has no meaning here",
                         (int)MAX(tt_control_bytes(l->at), 1), l->at);
    } else {
        l->op = *l->at++;
    }
}

/* "::" and a name behind it: C++'s */
static bool is_scope(const char *at)
{
    return at[0] == ':' && at[1] == ':' && is_word_start(at[2]);
}

/* "name", "Class::NAME", "::name" */
static void take_word(TtCondLexer *l)
{
    l->token = TOKEN_WORD;
    do {
        l->at += is_scope(l->at) ? 3 : 1;
    } while (is_word(*l->at) || is_scope(l->at));
}

void tt_cond_lex_next(TtCondLexer *l)
{
    if (l->status != TT_OK) {
        return;
    }
    while (g_ascii_isspace(*l->at)) {
        l->at++;
    }
    l->start = l->at;
    l->about = NULL;
    if (!*l->at) {
        l->token = TOKEN_END;
    } else if (g_ascii_isdigit(*l->at)) {
        take_number(l);
    } else if (*l->at == '\'') {
        take_char(l);
    } else if (*l->at == '$') {
        l->token = TOKEN_REGISTER;
        do {
            l->at++;
        } while (is_word(*l->at));
    } else if (is_word_start(*l->at) || is_scope(l->at)) {
        take_word(l);
    } else {
        take_operator(l);
    }
}

void tt_cond_lex_init(TtCondLexer *l, const char *text, TtDiag *diag)
{
    *l = (TtCondLexer) { .text = text, .at = text, .start = text, .diag = diag };
    if (strnlen(text, TT_COND_TEXT_MAX + 1) > TT_COND_TEXT_MAX) {
        l->token = TOKEN_BAD;
        l->status = tt_fail(diag, TT_ERR_LIMIT, "the condition is longer than %d bytes",
                            TT_COND_TEXT_MAX);
        return;
    }
    tt_cond_lex_next(l);
}

bool tt_cond_lex_is_word(const TtCondLexer *l, const char *word)
{
    return l->token == TOKEN_WORD && strlen(word) == (size_t)(l->at - l->start) &&
        !memcmp(l->start, word, l->at - l->start);
}

/* ---- types ---- */

typedef struct Word {
    const char *name;
    TtCondType type;                /* bytes 0: see below */
    char part;                      /* u, s, l, i: of a name of several words */
} Word;

static const Word words[] = {
    { "u8", { 1, false } }, { "u16", { 2, false } }, { "u32", { 4, false } },
    { "u64", { 8, false } }, { "s8", { 1, true } }, { "s16", { 2, true } },
    { "s32", { 4, true } }, { "s64", { 8, true } },
    { "uint8_t", { 1, false } }, { "uint16_t", { 2, false } },
    { "uint32_t", { 4, false } }, { "uint64_t", { 8, false } },
    { "int8_t", { 1, true } }, { "int16_t", { 2, true } },
    { "int32_t", { 4, true } }, { "int64_t", { 8, true } },
    { "size_t", { 8, false } }, { "bool", { 1, .is_bool = true } },
    { "_Bool", { 1, .is_bool = true } },
    { "void", { 0, false } }, { "char", { 1, true }, 'c' },
    { "short", { 2, true }, 'h' }, { "int", { 4, true }, 'i' },
    { "long", { 8, true }, 'l' }, { "unsigned", { 4, false }, 'u' },
    { "signed", { 4, true }, 's' },
};

static const Word *find_word(const char *at, size_t len)
{
    for (size_t i = 0; i < G_N_ELEMENTS(words); i++) {
        if (strlen(words[i].name) == len && !memcmp(words[i].name, at, len)) {
            return &words[i];
        }
    }
    return NULL;
}

bool tt_cond_is_reserved(const char *at, size_t len)
{
    return find_word(at, len) || (len == 2 && !memcmp(at, "at", 2));
}

/* "unsigned long int": the size is the smallest or largest that is named, the sign
 * what unsigned says. */
bool tt_cond_type(TtCondLexer *l, TtCondType *type)
{
    const Word *w = l->token == TOKEN_WORD ?
        find_word(l->start, l->at - l->start) : NULL;
    bool is_unsigned = false, sized = false;

    if (!w) {
        return false;
    }
    *type = w->type;
    if (w->part) {
        *type = (TtCondType) { 4, true };
        for (; w && w->part; w = l->token == TOKEN_WORD ?
             find_word(l->start, l->at - l->start) : NULL) {
            is_unsigned |= w->part == 'u';
            if (w->part == 'c' || w->part == 'h' || w->part == 'l') {
                if (sized && type->bytes != w->type.bytes) {
                    tt_cond_lex_fail(l, "there is no such type");
                }
                type->bytes = w->type.bytes;
                sized = true;
            }
            tt_cond_lex_next(l);
        }
        type->is_signed = !is_unsigned;
    } else {
        tt_cond_lex_next(l);
    }
    while (l->token == TOKEN_OPERATOR && l->op == '*') {
        if (type->stars == 8) {
            tt_cond_lex_fail(l, "a type has more than 8 stars");
            break;
        }
        type->stars++;
        tt_cond_lex_next(l);
    }
    return true;
}

/* ---- registers ---- */

static const struct {
    const char *name;
    TtCondReg reg;
    uint8_t bytes, shift;
    bool is_signed;                 /* as gdb has them */
} regs[] = {
#define GENERAL(x, L) \
    { "r" #x "x", TT_COND_R##L##X, 8, 0, true }, \
    { "e" #x "x", TT_COND_R##L##X, 4, 0, true }, \
    { #x "x", TT_COND_R##L##X, 2, 0, true }, \
    { #x "l", TT_COND_R##L##X, 1, 0, true }, { #x "h", TT_COND_R##L##X, 1, 8, true }
    { "sp", TT_COND_RSP, 8 }, { "fp", TT_COND_RBP, 8 },     /* gdb's names */
    GENERAL(a, A), GENERAL(b, B), GENERAL(c, C), GENERAL(d, D),
#define INDEX(x, X, sign) \
    { "r" #x, TT_COND_R##X, 8, 0, sign }, { "e" #x, TT_COND_R##X, 4, 0, true }, \
    { #x, TT_COND_R##X, 2, 0, true }, { #x "l", TT_COND_R##X, 1, 0, true }
    INDEX(si, SI, true), INDEX(di, DI, true), INDEX(bp, BP, false),
    INDEX(sp, SP, false),
#define NUMBERED(n) \
    { "r" #n, TT_COND_R##n, 8, 0, true }, { "r" #n "d", TT_COND_R##n, 4, 0, true }, \
    { "r" #n "w", TT_COND_R##n, 2, 0, true }, { "r" #n "l", TT_COND_R##n, 1, 0, true }
    NUMBERED(8), NUMBERED(9), NUMBERED(10), NUMBERED(11), NUMBERED(12), NUMBERED(13),
    NUMBERED(14), NUMBERED(15),
    { "rip", TT_COND_RIP, 8 }, { "pc", TT_COND_RIP, 8 }, { "eip", TT_COND_RIP, 4 },
    { "eflags", TT_COND_EFLAGS, 4 }, { "rflags", TT_COND_EFLAGS, 8 },
    { "cs", TT_COND_CS, 4 }, { "ss", TT_COND_SS, 4 }, { "ds", TT_COND_DS, 4 },
    { "es", TT_COND_ES, 4 }, { "fs", TT_COND_FS, 4 }, { "gs", TT_COND_GS, 4 },
    { "fs_base", TT_COND_FS_BASE, 8 }, { "gs_base", TT_COND_GS_BASE, 8 },
    { "k_gs_base", TT_COND_K_GS_BASE, 8 }, { "cr0", TT_COND_CR0, 8 },
    { "cr2", TT_COND_CR2, 8 }, { "cr3", TT_COND_CR3, 8 }, { "cr4", TT_COND_CR4, 8 },
    { "efer", TT_COND_EFER, 8 },
    { "cpu", TT_COND_CPU, 4 }, { "cpl", TT_COND_CPL, 4 },
};

bool tt_cond_find_reg(const char *name, size_t len, TtCondNode *node)
{
    for (size_t i = 0; i < G_N_ELEMENTS(regs); i++) {
        if (strlen(regs[i].name) == len && !memcmp(regs[i].name, name, len)) {
            *node = (TtCondNode) {
                .kind = NODE_REG, .reg = regs[i].reg, .shift = regs[i].shift,
                .type = { regs[i].bytes, regs[i].is_signed },
            };
            return true;
        }
    }
    return false;
}
