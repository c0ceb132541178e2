/*
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Guest "smp": where its other CPUs begin. They start in real mode at the copy
 * of the code from smp_begin on that main() has made at 8000h.
 */
    .set COPY, 0x8000

    .text
    .code16
    .globl smp_begin, smp_end
smp_begin:
    cli
    xor %ax, %ax
    mov %ax, %ds
    lgdtl COPY + (gdt_pointer - smp_begin)
    mov %cr0, %eax
    or $1, %eax
    mov %eax, %cr0
    ljmpl $0x08, $in_protected_mode
    .align 8
gdt:
    .quad 0
    .quad 0x00cf9a000000ffff    /* 0x08: flat 32-bit code */
    .quad 0x00cf92000000ffff    /* 0x10: flat data */
gdt_pointer:
    .word . - gdt - 1
    .long COPY + (gdt - smp_begin)
smp_end:

    .code32
in_protected_mode:
    mov $0x10, %ecx
    mov %cx, %ds
    mov %cx, %es
    mov %cx, %ss
    mov %cx, %fs
    mov %cx, %gs
    mov smp_cr3, %eax
    mov %eax, %cr3
    mov %cr0, %eax
    or $0x80000000, %eax
    mov %eax, %cr0
    mov 0xfee00020, %eax        /* the APIC's number is the CPU's */
    shr $24, %eax
    mov %eax, %ecx
    shl $12, %ecx
    lea smp_stacks + 4096(%ecx), %esp
    lidt smp_idt
    push %eax
    call smp_main
1:  cli
    hlt
    jmp 1b

/* Code that CPUs change under each other: mov $imm, %eax; ret. */
    .data
    .align 4096
    .globl smp_patch
smp_patch:
    .byte 0xb8, 0, 0, 0, 0, 0xc3
    .align 4096
