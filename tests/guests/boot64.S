/*
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Entry of the 64-bit bare-metal guests: multiboot header, identity map of the
 * first GiB in 2 MiB pages, long mode, one trap stub for all vectors.
 */
    .section .multiboot, "a"
    .align 4
    .long 0x1BADB002, 0, -(0x1BADB002)

    .text
    .code32
    .globl _start
_start:
    cli
    cld
    mov $stack_top, %esp
    mov %ebx, %ebp              /* multiboot information */
    movl $map3 + 3, map4
    movl $map2 + 3, map3
    xor %ecx, %ecx
1:  mov %ecx, %eax
    shl $21, %eax
    or $0x83, %eax
    mov %eax, map2(, %ecx, 8)
    inc %ecx
    cmp $512, %ecx
    jne 1b
    mov $map4, %eax
    mov %eax, %cr3
    mov %cr4, %eax
    or $0x20, %eax              /* PAE */
    mov %eax, %cr4
    mov $0xc0000080, %ecx       /* EFER.LME */
    rdmsr
    or $0x100, %eax
    wrmsr
    mov %cr0, %eax
    or $0x80000000, %eax
    mov %eax, %cr0
    lgdt gdt_pointer
    ljmp $0x08, $2f

    .code64
2:  mov $0x10, %ecx
    mov %ecx, %ds
    mov %ecx, %es
    mov %ecx, %ss
    mov %ebp, %edi
    xor %ebp, %ebp
    call start64
3:  cli
    hlt
    jmp 3b

    /* A trap ends the guest: on_trap() gets the stack pointer and never
     * returns. */
    .align 16
    .globl trap_stub
trap_stub:
    mov %rsp, %rdi
    and $-16, %rsp
    call on_trap

    .data
    .align 8
gdt:
    .quad 0
    .quad 0x00af9a000000ffff    /* 0x08: 64-bit code */
    .quad 0x00cf92000000ffff    /* 0x10: data */
    .quad 0x00cf9a000000ffff    /* 0x18: 32-bit code */
gdt_pointer:
    .word . - gdt - 1
    .long gdt

    .bss
    .align 4096
map4: .space 4096
map3: .space 4096
map2: .space 4096
    .space 65536
    .globl stack_top
stack_top:
    .section .note.GNU-stack, "", @progbits
