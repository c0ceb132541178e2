/*
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * What guest and host program do alike: eq_main() does what the options say and prints
 * it. Whoever includes this has put_str(), put_hex() and option().
 */
#ifndef CPUEQ_MAIN_H
#define CPUEQ_MAIN_H

static void eq_word(const char *name, eq_u64 v)
{
    put_str(name);
    put_hex(v);
}

static void eq_show(eq_u64 n, const struct eq_state *in, const struct eq_state *out)
{
    const eq_u64 *a = &in->rax, *b = &out->rax;
    static const char *const names[] = { " a=", " b=", " c=", " d=", " si=", " di=",
                                         " fl=", " mx=" };

    eq_word("case ", n);
    for (int i = 0; i < 8; i++) {
        eq_word(names[i], a[i]);
        eq_word(">", b[i]);
    }
    for (int i = 0; i < 4; i++) {
        eq_word(" x", in->xmm[i / 2][i % 2]);
        eq_word(">", out->xmm[i / 2][i % 2]);
    }
    eq_word(" cwsw=", *(eq_u32 *)in->fx);
    eq_word(">", *(eq_u32 *)out->fx);
    eq_word(" tags=", in->fx[4]);
    eq_word(">", out->fx[4]);
    for (int i = 0; i < 3; i++) {
        eq_word(" st=", *(unsigned short *)(in->fx + 40 + 16 * i));
        eq_word(".", *(eq_u64 *)(in->fx + 32 + 16 * i));
        eq_word(">", *(unsigned short *)(out->fx + 40 + 16 * i));
        eq_word(".", *(eq_u64 *)(out->fx + 32 + 16 * i));
    }
    put_str("\n");
}

static void eq_main(void)
{
    eq_u64 count = option("count", 2000), from = option("from", 0);
    eq_u64 blocks = option("blocks", 1), only = option("op", ~0ul);
    eq_u64 class = option("class", ~0ul);
    eq_detail *detail = option("detail", 0) ? eq_show : 0;

    for (eq_u32 i = 0; i < eq_ops_count; i++) {
        const struct eq_op *op = &eq_ops[i];

        if ((only != ~0ul && only != i) ||
            (class != ~0ul && class != (eq_u64)op->class)) {
            continue;
        }
        for (eq_u64 b = 0; b < blocks; b++) {
            eq_u64 h = eq_work(op, from + b * (count / blocks), count / blocks, detail);

            eq_word("op ", i);
            eq_word(" block ", b);
            eq_word(" hash ", h);
            put_str(" ");
            put_str(eq_class_names[op->class]);
            put_str(" ");
            put_str(op->code);
            put_str("\n");
        }
    }
}

#endif
