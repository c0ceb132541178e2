/*
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * The instruction forms themselves, and what loads and stores their state. A form of
 * 32-bit code runs in a code segment of its own; it has no other way back than a far
 * jump, and needs a data segment and a stack below 4 GiB.
 */
#include "cpueq.h"

#ifdef EQ_NATIVE                        /* Linux's selectors */
#define SEL_CODE_64 "0x33"
#define SEL_CODE_32 "0x23"
#define SEL_DATA_32 "0x2b"
#else                                   /* boot64.S's */
#define SEL_CODE_64 "0x08"
#define SEL_CODE_32 "0x18"
#define SEL_DATA_32 "0x10"
#endif

#define LOAD \
    "push %rbx; push %rbp; push %r12; push %r13; push %r14; push %r15\n\t" \
    "mov %rdi, %r12; mov %rsi, %r13\n\t"
#define LOAD_REGS \
    "pushq 48(%r12)\n\t" \
    "mov 0(%r12), %rax; mov 8(%r12), %rbx; mov 16(%r12), %rcx\n\t" \
    "mov 24(%r12), %rdx; mov 32(%r12), %rsi; mov 40(%r12), %rdi\n\t"
#define STORE_REGS \
    "pushfq; popq 48(%r12); cld\n\t" \
    "mov %rax, 0(%r12); mov %rbx, 8(%r12); mov %rcx, 16(%r12)\n\t" \
    "mov %rdx, 24(%r12); mov %rsi, 32(%r12); mov %rdi, 40(%r12)\n\t"
#define LEAVE \
    "pop %r15; pop %r14; pop %r13; pop %r12; pop %rbp; pop %rbx\n\t" \
    "ret\n"

__asm__(".text\n"
        ".globl eq_run, eq_run_x87, eq_run_32\n"
        "eq_run:\n\t"
        LOAD
        "ldmxcsr 56(%r12); movups 64(%r12), %xmm0; movups 80(%r12), %xmm1\n\t"
        LOAD_REGS
        "popfq; call *%r13\n\t"
        STORE_REGS
        "movups %xmm0, 64(%r12); movups %xmm1, 80(%r12); stmxcsr 56(%r12)\n\t"
        LEAVE
        "eq_run_x87:\n\t"
        LOAD
        "fxrstor64 128(%r12)\n\t"
        LOAD_REGS
        "popfq; call *%r13\n\t"
        STORE_REGS
        "fxsave64 128(%r12); fninit\n\t"
        LEAVE
        "eq_run_32:\n\t"
        LOAD
        "mov $" SEL_DATA_32 ", %eax; mov %eax, %ds\n\t"
        "mov %rsp, %r14; lea eq_low_stack+2048, %rsp\n\t"
        LOAD_REGS
        "pop %r15; pushq $" SEL_CODE_32 "; push %r13; push %r15; popfq; lretq\n"
        "eq_back_64:\n\t"
        STORE_REGS
        "mov %r14, %rsp\n\t"
        LEAVE
        ".bss\n\t"
        ".balign 16\n"
        "eq_low_stack: .space 2112\n"
        ".text\n");

/* The forms. */
#define STUB(id, code) __asm__(".text\n" #id ":\n\t" code "\n\tret\n");
#define STUB_32(id, code) \
    __asm__(".text\n.code32\n" #id ":\n\t" code "\n\t" \
            "ljmp $" SEL_CODE_64 ", $eq_back_64\n.code64\n");
#define STUB_ANY STUB
#define STUB_DIV_8 STUB
#define STUB_DIV_16 STUB
#define STUB_DIV_32 STUB
#define STUB_DIV_64 STUB
#define STUB_IDIV_8 STUB
#define STUB_IDIV_16 STUB
#define STUB_IDIV_32 STUB
#define STUB_IDIV_64 STUB
#define STUB_CODE_32 STUB_32
#define STUB_STRINGS STUB
#define STUB_FLOATS STUB
#define STUB_X87 STUB

#define ID_(line, tag) eq_op_##line##_##tag
#define ID(line, tag) ID_(line, tag)
#define MAKE_(stub, id, code) stub(id, code)
#define OP(class, kind, code, tag) MAKE_(STUB_##kind, ID(__LINE__, tag), code)
#include "cpueq-ops.h"

#define OP(class, kind, code, tag) extern void ID(__LINE__, tag)(void);
#include "cpueq-ops.h"

const struct eq_op eq_ops[] = {
#define OP(class, kind, code, tag) { EQ_##class, EQ_KIND_##kind, code, \
                                     ID(__LINE__, tag) },
#define EQ_KIND_ANY EQ_ANY
#define EQ_KIND_DIV_8 EQ_DIV_8
#define EQ_KIND_DIV_16 EQ_DIV_16
#define EQ_KIND_DIV_32 EQ_DIV_32
#define EQ_KIND_DIV_64 EQ_DIV_64
#define EQ_KIND_IDIV_8 EQ_IDIV_8
#define EQ_KIND_IDIV_16 EQ_IDIV_16
#define EQ_KIND_IDIV_32 EQ_IDIV_32
#define EQ_KIND_IDIV_64 EQ_IDIV_64
#define EQ_KIND_CODE_32 EQ_CODE_32
#define EQ_KIND_STRINGS EQ_STRINGS
#define EQ_KIND_FLOATS EQ_FLOATS
#include "cpueq-ops.h"
};

const eq_u32 eq_ops_count = sizeof(eq_ops) / sizeof(eq_ops[0]);

const char *const eq_class_names[EQ_CLASSES] = {
    "alu", "shift", "rotate", "muldiv", "bits", "bcd", "string", "approx", "sse",
    "x87", "transcendental", "comi",
};
