/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Puts addresses in place of a program's names, before a condition is parsed.
 * What is wrong with the whole is found here, too: complaints are about the text with names.
 */
#include "debug/tt-cond.h"
#include "tt-cond-int.h"

#include <glib.h>

#define EXPANDED_MAX (4 * TT_COND_TEXT_MAX)

/* What stands before a token, as far as it says what & means after it. */
typedef struct Before {
    bool is_operand;            /* & has two sides; else it is an address */
    bool in_cast;               /* "(u32 *": the next ) ends no operand */
} Before;

static void note_token(Before *b, const TtCondLexer *l)
{
    bool is_reserved = l->token == TOKEN_WORD &&
        tt_cond_is_reserved(l->start, l->at - l->start);
    bool closes = l->token == TOKEN_OPERATOR && (l->op == ')' || l->op == ']');

    if (closes && b->in_cast) {
        b->in_cast = b->is_operand = false;
        return;
    }
    b->in_cast |= is_reserved && !tt_cond_lex_is_word(l, "at");
    b->is_operand = closes || (l->token != TOKEN_OPERATOR && !is_reserved);
}

static TtStatus put_name(TtCondLexer *l, TtCondName *name, void *opaque,
                         bool is_address, GString *out)
{
    g_autofree char *by = NULL;
    TtDiag why = { 0 };
    size_t used = l->at - l->start;

    by = name(opaque, l->start, &used, is_address, &why);
    if (!by) {
        return tt_cond_lex_fail(l, "%.140s", why.text);
    }
    g_assert(used >= (size_t)(l->at - l->start) && used <= strlen(l->start));
    g_string_append(out, by);
    l->at = l->start + used;
    return TT_OK;
}

static void note_piece(GArray *pieces, const GString *s, const TtCondLexer *l)
{
    const TtCondPiece piece = { s->len, l->start - l->text };

    g_array_append_val(pieces, piece);
}

/* Is it grammar? Whether it can be searched for, or is a place, the caller asks. */
static TtStatus check(const GString *s, const GArray *pieces, TtDiag *diag)
{
    TtDiag why = { 0 };
    TtCond *c = NULL;
    TtStatus status = tt_cond_parse_pieces(s->str, (TtCondPiece *)pieces->data, pieces->len,
                                           &c, &why);

    tt_cond_free(c);
    if (status == TT_ERR_FORMAT && diag) {
        *diag = why;
    }
    return status == TT_ERR_FORMAT ? status : TT_OK;
}

TtStatus tt_cond_resolve(const char *text, TtCondName *name, void *opaque, char **out,
                         TtDiag *diag)
{
    g_autoptr(GArray) pieces = g_array_new(false, false, sizeof(TtCondPiece));
    GString *s = g_string_new(NULL);
    Before before = { 0 };
    TtCondLexer l;

    *out = NULL;
    tt_cond_lex_init(&l, text, diag);
    while (l.status == TT_OK && l.token != TOKEN_END) {
        bool address = l.token == TOKEN_OPERATOR && l.op == '&' &&
            !before.is_operand;
        TtCondLexer amp = l;

        note_piece(pieces, s, &l);
        if (address) {
            tt_cond_lex_next(&l);
            address = l.status == TT_OK && l.token == TOKEN_WORD &&
                !tt_cond_is_reserved(l.start, l.at - l.start);
            if (!address) {
                l = amp;
            }
        }
        if (l.token == TOKEN_WORD && !tt_cond_is_reserved(l.start, l.at - l.start)) {
            put_name(&l, name, opaque, address, s);
        } else {
            g_string_append_len(s, l.start, l.at - l.start);
        }
        g_string_append_c(s, ' ');
        note_token(&before, &l);
        tt_cond_lex_next(&l);
        if (s->len > EXPANDED_MAX) {
            break;
        }
    }
    if (l.status == TT_OK && s->len > TT_COND_TEXT_MAX) {
        l.status = tt_fail(diag, TT_ERR_LIMIT, "the condition is longer than %d bytes, "
                           "with addresses for its names", TT_COND_TEXT_MAX);
    }
    if (l.status == TT_OK) {
        note_piece(pieces, s, &l);
        l.status = check(s, pieces, diag);
    }
    if (l.status == TT_OK) {
        *out = g_string_free(s, false);
    } else {
        g_string_free(s, true);
    }
    return l.status;
}
