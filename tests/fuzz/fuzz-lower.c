/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzz target of typed conditions: any text, with types that lead anywhere, also back to
 * themselves, ends with a condition or a complaint without control characters. What comes
 * out has no names any more: the parser of conditions understands it, or says that it is
 * too large, or that nothing in it changes.
 *
 * Input: 8 bytes that the types are made of, then the text.
 */
#include "debug/tt-cond.h"
#include "debug/tt-lower.h"

#include <stdlib.h>
#include <glib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CHECK(x) do { if (!(x)) { abort(); } } while (0)
#define N_TYPES 24

static uint64_t seed;

static uint64_t mixed(uint64_t a, uint64_t b)
{
    uint64_t x = (a + 1) * 0x9e3779b97f4a7c15u ^ (b + seed) * 0xc2b2ae3d27d4eb4fu;

    x ^= x >> 29;
    x *= 0xbf58476d1ce4e5b9u;
    return x ^ x >> 32;
}

static void describe(void *opaque, TtTypeId type, TtTypeInfo *info)
{
    static const uint64_t sizes[] = { 0, 1, 2, 4, 8, 8, 16, UINT64_MAX };
    uint64_t x = mixed(type, 1);

    CHECK(type && type <= N_TYPES);
    *info = (TtTypeInfo) {
        .kind = x % 7, .bytes = sizes[x >> 8 & 7], .is_signed = x >> 16 & 1,
        .is_declared = (x >> 17 & 7) == 0, .to = (x >> 24) % (N_TYPES + 1),
        .is_bool = x >> 32 & 1, .is_reference = x % 7 == TT_TYPE_POINTER && x >> 33 & 1,
        .is_several = x >> 34 & 1,
    };
    memset(info->name, x & 0x80 ? '\033' : 'n', sizeof(info->name));    /* without an end */
}

static bool member(void *opaque, TtTypeId type, unsigned n, TtTypeMember *m)
{
    static const char *const names[] = { "a", "b", "next", NULL, NULL };
    uint64_t x = mixed(type, 100 + n);

    CHECK(type && type <= N_TYPES);
    *m = (TtTypeMember) {
        names[x % 5], (x >> 8) % (N_TYPES + 1), x >> 16, x & 0x8000 ? x >> 20 & 127 : 0,
    };
    m->is_base = !m->name && x >> 40 & 1;
    m->has_no_place = (x >> 41 & 3) == 0;
    return n < (mixed(type, 2) & 7);
}

static TtTypeId find(void *opaque, TtTypeTag tag, const char *name, size_t len, TtDiag *why)
{
    CHECK(len && len <= strlen(name));
    if (name[0] == 'w') {
        tt_fail(why, TT_ERR_FORMAT, "there are several");
        return 0;
    }
    return name[0] == 's' || name[0] == 't' ? 1 + mixed(tag, name[0]) % N_TYPES : 0;
}

static bool lookup(void *opaque, const char *name, size_t len, TtNameInfo *info, TtDiag *why)
{
    uint64_t x = mixed(len, (uint8_t)name[0]);

    CHECK(len && len <= strlen(name));
    *info = (TtNameInfo) { x & 3, x >> 8, (x >> 2) % (N_TYPES + 1) };
    /* a number has a type of numbers, as those that know types say */
    info->type = info->kind == TT_NAME_NUMBER ? 0 : info->type;
    info->is_per_cpu = (x >> 20 & 3) == 0;
    info->lost = (x >> 22 & 3) == 0 ? "a.dwo" : NULL;
    tt_fail(why, TT_ERR_FORMAT, "there is no such name");
    return name[0] != 'z';
}

static const TtTypes types = {
    .describe = describe, .member = member, .find = find, .name = lookup,
};

typedef TtStatus Lowered(const char *text, const TtTypes *t, char **out, TtDiag *diag);

static void try_text(const char *text, Lowered *lowered)
{
    g_autofree char *plain = NULL;
    TtDiag diag = { 0 };
    TtCond *c;
    TtStatus s = lowered(text, &types, &plain, &diag);

    CHECK((s == TT_OK) == (plain != NULL));
    CHECK(s == TT_OK || s == TT_ERR_FORMAT || s == TT_ERR_LIMIT);
    CHECK(s == TT_OK || (diag.status == s && diag.text[0] && !tt_has_control(diag.text)));
    if (plain) {
        s = tt_cond_parse(plain, &c, &diag);
        /* "at" needs a constant: only the parser of conditions knows */
        CHECK(s == TT_OK || s == TT_ERR_LIMIT || s == TT_ERR_INVALID || strstr(text, "at"));
        tt_cond_free(c);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    g_autofree char *text = NULL;

    if (size >= 8) {
        seed = tt_get_le64(data);
        text = g_strndup((const char *)data + 8, size - 8);
        try_text(text, tt_lower);
        try_text(text, tt_lower_place);
    }
    return 0;
}
