/*
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Entry of every bare-metal guest: multiboot header, segments, trap stubs.
 *
 * The stubs bring all 48 first vectors to rt_trap() with the frame that
 * struct rt_frame in rt.h describes. Whether a vector runs with interrupts
 * on is decided by its gate (rt_gate()), not here.
 */
    .section .multiboot, "a"
    .align 4
    .long 0x1BADB002, 0, -(0x1BADB002)

    .text
    .globl _start
_start:
    cli
    cld
    mov $stack_top, %esp
    lgdt gdt_pointer
    ljmp $0x08, $1f
1:  mov $0x10, %ecx
    mov %cx, %ds
    mov %cx, %es
    mov %cx, %ss
    mov %cx, %fs
    mov %cx, %gs
    push %ebx
    push %eax
    call rt_start
2:  cli
    hlt
    jmp 2b

    .altmacro
    .macro trap_stub vector
    .align 16
    .if (\vector == 8) || (\vector == 10) || (\vector == 11) || \
        (\vector == 12) || (\vector == 13) || (\vector == 14) || \
        (\vector == 17)
    nop                         /* the CPU pushed an error code */
    nop
    .else
    push $0
    .endif
    push $\vector
    jmp trap_common
    .endm

    .align 16
    .globl rt_stubs
rt_stubs:
    .set vector_number, 0
    .rept 48
    trap_stub %vector_number
    .set vector_number, vector_number + 1
    .endr

trap_common:
    pusha
    cld
    push %esp
    call rt_trap
    add $4, %esp
    popa
    add $8, %esp
    iret

    .data
    .align 8
gdt:
    .quad 0
    .quad 0x00cf9a000000ffff    /* 0x08: flat 32-bit code */
    .quad 0x00cf92000000ffff    /* 0x10: flat data */
    .quad 0x00009a000000ffff    /* 0x18: 16-bit code at 0 */
    .quad 0x000092000000ffff    /* 0x20: 16-bit data at 0 */
gdt_pointer:
    .word . - gdt - 1
    .long gdt

    .bss
    .align 4096
    .space 65536
    .globl stack_top
stack_top:
