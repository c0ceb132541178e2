/*
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * What is executed to compare TCG with the real CPU: one line for each instruction
 * form. OP(class, kind, code): "kind" says which operands it gets (cpueq.h). SIZES,
 * WIDE and LONGS stand for the forms of 8 to 64, 16 to 64, and 32 and 64 bits of
 * "op source, destination". Included more than once, with OP defined anew.
 */
#define SIZES(class, kind, op, s, d) \
    OP(class, kind, op "b " s##_8 d##_8, b) OP(class, kind, op "w " s##_16 d##_16, w) \
    WIDER(class, kind, op, s, d)
#define WIDER(class, kind, op, s, d) \
    OP(class, kind, op "l " s##_32 d##_32, l) OP(class, kind, op "q " s##_64 d##_64, q)
#define WIDE(class, kind, op, s, d) \
    OP(class, kind, op "w " s##_16 d##_16, w) WIDER(class, kind, op, s, d)
#define ONE(class, kind, op) OP(class, kind, op, x)

#define A_8 "%al"
#define A_16 "%ax"
#define A_32 "%eax"
#define A_64 "%rax"
#define B_8 "%bl, "
#define B_16 "%bx, "
#define B_32 "%ebx, "
#define B_64 "%rbx, "
#define BB_8 "%bl"
#define BB_16 "%bx"
#define BB_32 "%ebx"
#define BB_64 "%rbx"
#define C_8 "%cl, "
#define C_16 "%cl, "
#define C_32 "%cl, "
#define C_64 "%cl, "
#define CB_16 "%cl, %bx, "
#define CB_32 "%cl, %ebx, "
#define CB_64 "%cl, %rbx, "
#define I1_8 "$1, "
#define I1_16 "$1, "
#define I1_32 "$1, "
#define I1_64 "$1, "
#define I5_8 "$5, "
#define I5_16 "$5, "
#define I5_32 "$5, "
#define I5_64 "$5, "
#define I9_8 "$9, "
#define I9_16 "$19, "
#define I9_32 "$19, "
#define I9_64 "$39, "
#define I9B_16 "$9, %bx, "
#define I9B_32 "$19, %ebx, "
#define I9B_64 "$39, %rbx, "
#define I1B_16 "$1, %bx, "
#define I1B_32 "$1, %ebx, "
#define I1B_64 "$1, %rbx, "
#define I20B_16 "$20, %bx, "
#define I20B_32 "$31, %ebx, "
#define I20B_64 "$63, %rbx, "
#define M77_16 "$-77, %bx, "
#define M77_32 "$-77, %ebx, "
#define M77_64 "$-77, %rbx, "
#define NO_8
#define NO_16
#define NO_32
#define NO_64

SIZES(ALU, ANY, "add", B, A)
SIZES(ALU, ANY, "sub", B, A)
SIZES(ALU, ANY, "adc", B, A)
SIZES(ALU, ANY, "sbb", B, A)
SIZES(ALU, ANY, "and", B, A)
SIZES(ALU, ANY, "or", B, A)
SIZES(ALU, ANY, "xor", B, A)
SIZES(ALU, ANY, "cmp", B, A)
SIZES(ALU, ANY, "test", B, A)
SIZES(ALU, ANY, "inc", NO, A)
SIZES(ALU, ANY, "dec", NO, A)
SIZES(ALU, ANY, "neg", NO, A)
SIZES(ALU, ANY, "not", NO, A)
SIZES(ALU, ANY, "xadd", B, A)
SIZES(ALU, ANY, "cmpxchg", B, BB)
SIZES(ALU, ANY, "sub", B, BB)
SIZES(ALU, ANY, "sbb", B, BB)
SIZES(ALU, ANY, "xor", B, BB)
WIDER(ALU, ANY, "bswap", NO, A)
ONE(ALU, ANY, "lahf")
ONE(ALU, ANY, "sahf")
ONE(ALU, ANY, "cmc")
ONE(ALU, ANY, "add %ebx, %eax; lahf")
ONE(ALU, ANY, "cmovle %ebx, %eax")
ONE(ALU, ANY, "cmovp %rbx, %rax")
ONE(ALU, ANY, "setbe %al")
ONE(ALU, ANY, "cltq; cqto")
ONE(ALU, ANY, "adcx %rbx, %rax")
ONE(ALU, ANY, "adox %ebx, %eax")
ONE(ALU, ANY, "subl %ebx, %eax; adoxl %ecx, %edx")

SIZES(SHIFT, ANY, "shl", C, A)
SIZES(SHIFT, ANY, "shr", C, A)
SIZES(SHIFT, ANY, "sar", C, A)
SIZES(SHIFT, ANY, "shl", I1, A)
SIZES(SHIFT, ANY, "shr", I1, A)
SIZES(SHIFT, ANY, "sar", I1, A)
SIZES(SHIFT, ANY, "shl", I5, A)
SIZES(SHIFT, ANY, "shr", I5, A)
SIZES(SHIFT, ANY, "sar", I5, A)
SIZES(SHIFT, ANY, "shl", I9, A)
SIZES(SHIFT, ANY, "shr", I9, A)
SIZES(SHIFT, ANY, "sar", I9, A)
WIDE(SHIFT, ANY, "shld", CB, A)
WIDE(SHIFT, ANY, "shrd", CB, A)
WIDE(SHIFT, ANY, "shld", I1B, A)
WIDE(SHIFT, ANY, "shrd", I1B, A)
WIDE(SHIFT, ANY, "shld", I9B, A)
WIDE(SHIFT, ANY, "shrd", I9B, A)
WIDE(SHIFT, ANY, "shld", I20B, A)
WIDE(SHIFT, ANY, "shrd", I20B, A)
ONE(SHIFT, ANY, "shlx %rcx, %rbx, %rax")
ONE(SHIFT, ANY, "shrx %ecx, %ebx, %eax")
ONE(SHIFT, ANY, "sarx %rcx, %rbx, %rax")

SIZES(ROTATE, ANY, "rol", C, A)
SIZES(ROTATE, ANY, "ror", C, A)
SIZES(ROTATE, ANY, "rcl", C, A)
SIZES(ROTATE, ANY, "rcr", C, A)
SIZES(ROTATE, ANY, "rol", I1, A)
SIZES(ROTATE, ANY, "ror", I1, A)
SIZES(ROTATE, ANY, "rcl", I1, A)
SIZES(ROTATE, ANY, "rcr", I1, A)
SIZES(ROTATE, ANY, "rol", I9, A)
SIZES(ROTATE, ANY, "ror", I9, A)
SIZES(ROTATE, ANY, "rcl", I9, A)
SIZES(ROTATE, ANY, "rcr", I9, A)
ONE(ROTATE, ANY, "rorx $13, %rbx, %rax")

SIZES(MULDIV, ANY, "mul", NO, BB)
SIZES(MULDIV, ANY, "imul", NO, BB)
WIDE(MULDIV, ANY, "imul", B, A)
WIDE(MULDIV, ANY, "imul", M77, A)
ONE(MULDIV, ANY, "mulx %rbx, %rax, %rcx")
ONE(MULDIV, ANY, "mulx %ebx, %eax, %ecx")
ONE(MULDIV, DIV_8, "divb %bl")
ONE(MULDIV, DIV_16, "divw %bx")
ONE(MULDIV, DIV_32, "divl %ebx")
ONE(MULDIV, DIV_64, "divq %rbx")
ONE(MULDIV, IDIV_8, "idivb %bl")
ONE(MULDIV, IDIV_16, "idivw %bx")
ONE(MULDIV, IDIV_32, "idivl %ebx")
ONE(MULDIV, IDIV_64, "idivq %rbx")

WIDE(BITS, ANY, "bsf", B, A)
WIDE(BITS, ANY, "bsr", B, A)
WIDE(BITS, ANY, "tzcnt", B, A)
WIDE(BITS, ANY, "lzcnt", B, A)
WIDE(BITS, ANY, "popcnt", B, A)
WIDE(BITS, ANY, "bt", B, A)
WIDE(BITS, ANY, "bts", B, A)
WIDE(BITS, ANY, "btr", B, A)
WIDE(BITS, ANY, "btc", B, A)
WIDE(BITS, ANY, "bt", I5, A)
WIDE(BITS, ANY, "bts", I9, A)
WIDER(BITS, ANY, "blsi", B, A)
WIDER(BITS, ANY, "blsr", B, A)
WIDER(BITS, ANY, "blsmsk", B, A)
ONE(BITS, ANY, "andn %rbx, %rcx, %rax")
ONE(BITS, ANY, "andn %ebx, %ecx, %eax")
ONE(BITS, ANY, "bextr %rcx, %rbx, %rax")
ONE(BITS, ANY, "bextr %ecx, %ebx, %eax")
ONE(BITS, ANY, "bzhi %rcx, %rbx, %rax")
ONE(BITS, ANY, "bzhi %ecx, %ebx, %eax")
ONE(BITS, ANY, "pdep %rcx, %rbx, %rax")
ONE(BITS, ANY, "pext %rcx, %rbx, %rax")
ONE(BITS, ANY, "xor %ebx, %ebx; bsf %rbx, %rax")
ONE(BITS, ANY, "xor %ebx, %ebx; bsr %ebx, %eax")
ONE(BITS, ANY, "crc32q %rbx, %rax")

ONE(BCD, CODE_32, "daa")
ONE(BCD, CODE_32, "das")
ONE(BCD, CODE_32, "aaa")
ONE(BCD, CODE_32, "aas")
ONE(BCD, CODE_32, "aam")
ONE(BCD, CODE_32, "aad")
ONE(BCD, CODE_32, "aam $7")
ONE(BCD, CODE_32, "aad $201")
ONE(BCD, CODE_32, "inc %eax")
ONE(BCD, CODE_32, "add %ebx, %eax; daa")
ONE(BCD, CODE_32, ".byte 0xd6")                 /* SALC */

SIZES(STRING, STRINGS, "rep movs", NO, NO)
SIZES(STRING, STRINGS, "rep stos", NO, NO)
SIZES(STRING, STRINGS, "rep lods", NO, NO)
SIZES(STRING, STRINGS, "repe cmps", NO, NO)
SIZES(STRING, STRINGS, "repne cmps", NO, NO)
SIZES(STRING, STRINGS, "repe scas", NO, NO)
SIZES(STRING, STRINGS, "repne scas", NO, NO)
SIZES(STRING, STRINGS, "cmps", NO, NO)
SIZES(STRING, STRINGS, "movs", NO, NO)

ONE(APPROX, FLOATS, "rcpps %xmm1, %xmm0")
ONE(APPROX, FLOATS, "rcpss %xmm1, %xmm0")
ONE(APPROX, FLOATS, "rsqrtps %xmm1, %xmm0")
ONE(APPROX, FLOATS, "rsqrtss %xmm1, %xmm0")

ONE(SSE, FLOATS, "addps %xmm1, %xmm0")
ONE(SSE, FLOATS, "subpd %xmm1, %xmm0")
ONE(SSE, FLOATS, "mulps %xmm1, %xmm0")
ONE(SSE, FLOATS, "divps %xmm1, %xmm0")
ONE(SSE, FLOATS, "divpd %xmm1, %xmm0")
ONE(SSE, FLOATS, "sqrtps %xmm1, %xmm0")
ONE(SSE, FLOATS, "sqrtpd %xmm1, %xmm0")
ONE(SSE, FLOATS, "minps %xmm1, %xmm0")
ONE(SSE, FLOATS, "maxpd %xmm1, %xmm0")
ONE(SSE, FLOATS, "cmpltps %xmm1, %xmm0")
ONE(SSE, FLOATS, "ucomiss %xmm1, %xmm0")
ONE(SSE, FLOATS, "comisd %xmm1, %xmm0")
ONE(SSE, FLOATS, "cvttps2dq %xmm1, %xmm0")
ONE(SSE, FLOATS, "cvtpd2ps %xmm1, %xmm0")
ONE(SSE, FLOATS, "cvtps2pd %xmm1, %xmm0")
ONE(SSE, FLOATS, "cvtsd2si %xmm1, %rax")
ONE(SSE, FLOATS, "cvtsi2ss %rbx, %xmm0")
ONE(SSE, FLOATS, "haddps %xmm1, %xmm0")
ONE(SSE, FLOATS, "addsubpd %xmm1, %xmm0")
ONE(SSE, FLOATS, "dpps $0x7f, %xmm1, %xmm0")
ONE(SSE, FLOATS, "roundps $4, %xmm1, %xmm0")
ONE(SSE, FLOATS, "ptest %xmm1, %xmm0")
ONE(SSE, FLOATS, "pcmpistri $0x18, %xmm1, %xmm0")
ONE(SSE, FLOATS, "pcmpestrm $0x44, %xmm1, %xmm0")
ONE(SSE, FLOATS, "mpsadbw $5, %xmm1, %xmm0")

ONE(X87, X87, "fadd %st(1), %st")
ONE(X87, X87, "fsub %st(1), %st")
ONE(X87, X87, "fmulp %st, %st(1)")
ONE(X87, X87, "fdiv %st(1), %st")
ONE(X87, X87, "fsqrt")
ONE(X87, X87, "fprem")
ONE(X87, X87, "fprem1")
ONE(X87, X87, "fscale")
ONE(X87, X87, "fxtract")
ONE(X87, X87, "frndint")
ONE(X87, X87, "fxam")
ONE(X87, X87, "fcom %st(1)")
ONE(COMI, X87, "fucomip %st(1), %st")
ONE(X87, X87, "ftst")
ONE(X87, X87, "fchs; fabs")
ONE(X87, X87, "fldpi; fldl2t; fldln2; fldlg2; fldl2e")
ONE(COMI, X87, "fcmovbe %st(1), %st")
ONE(X87, X87, "push %rax; push %rbx; fistpll (%rsp); pop %rbx; pop %rax")
ONE(X87, X87, "push %rax; push %rbx; fisttpl (%rsp); pop %rbx; pop %rax")
ONE(X87, X87, "push %rax; push %rbx; fstpl (%rsp); fstps 8(%rsp); pop %rbx; pop %rax")
ONE(X87, X87, "push %rax; push %rbx; fbstp (%rsp); pop %rbx; pop %rax")

ONE(TRANSC, X87, "f2xm1")
ONE(TRANSC, X87, "fyl2x")
ONE(TRANSC, X87, "fyl2xp1")
ONE(TRANSC, X87, "fpatan")
ONE(TRANSC, X87, "fptan")
ONE(TRANSC, X87, "fsin")
ONE(TRANSC, X87, "fcos")
ONE(TRANSC, X87, "fsincos")

#undef OP
