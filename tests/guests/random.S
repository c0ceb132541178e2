/*
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Assembly parts of guest "random": calls of a block with all registers set, and
 * turns in real and in long mode.
 */
    .set LOW, 0x6000            /* where main() has put random_low */

    .text
    .globl random_call, random_real, random_long, random_low, random_low_end

/* void random_call(u32 *regs, const void *code): registers in and out, flags out */
random_call:
    pusha
    mov 36(%esp), %eax
    mov %eax, where
    mov 40(%esp), %ecx
    mov %ecx, target
    mov 4(%eax), %ecx
    mov 8(%eax), %edx
    mov 12(%eax), %ebx
    mov 16(%eax), %esi
    mov 20(%eax), %edi
    mov 24(%eax), %ebp
    mov (%eax), %eax
    call *target
    push %eax
    pushf
    pop %eax
    cld
    and $0x8d5, %eax
    push %eax
    mov where, %eax
    pop 28(%eax)
    pop (%eax)
    mov %ecx, 4(%eax)
    mov %edx, 8(%eax)
    mov %ebx, 12(%eax)
    mov %esi, 16(%eax)
    mov %edi, 20(%eax)
    mov %ebp, 24(%eax)
    popa
    ret

/* Off with paging and with this mode's descriptor tables. */
    .macro leave_protected
    pusha
    pushf
    cli
    mov 40(%esp), %ecx          /* turns */
    sidt old_idt
    sgdt old_gdt
    mov %cr3, %eax
    mov %eax, old_cr3
    mov %esp, old_esp
    mov %cr0, %eax
    and $0x7fffffff, %eax
    mov %eax, %cr0
    .endm

    .macro enter_protected      /* paging is still off */
    mov $0x10, %eax
    mov %ax, %ds
    mov %ax, %es
    mov %ax, %ss
    mov old_esp, %esp
    lgdt old_gdt
    lidt old_idt
    mov old_cr3, %eax
    mov %eax, %cr3
    mov %cr0, %eax
    or $0x80000000, %eax
    mov %eax, %cr0
    popf
    popa
    ret
    .endm

random_real:
    leave_protected
    ljmp $0x18, $LOW + (in_16 - random_low)
back_from_real:
    mov %ebx, random_seen
    mov %edx, random_seen + 4
    mov %esi, random_seen + 8
    enter_protected

    .code16
random_low:
in_16:
    mov $0x20, %ax
    mov %ax, %ds
    mov %ax, %es
    mov %ax, %ss
    mov %cr0, %eax
    and $0xfe, %al
    mov %eax, %cr0
    ljmp $0, $LOW + (in_real - random_low)
in_real:
    xor %ax, %ax
    mov %ax, %ds
    mov %ax, %es
    mov %ax, %ss
    mov $LOW, %sp
    lidtl LOW + (real_idt - random_low)
    xor %ebx, %ebx
    xor %edx, %edx
1:  push %cx
    in $0x40, %al
    movzx %al, %eax
    add %eax, %ebx
    rol $3, %ebx
    mov $0x5000, %si
    mov $0x5801, %di
    mov $60, %cx
    rep movsw
    incw 0x5000
    mov $0x4000, %ax            /* segments with a base */
    mov %ax, %es
    mov %es:(0x1230), %dx
    add %bx, %es:(0x1230)
    xor %ax, %ax
    mov %ax, %es
    pop %cx
    loop 1b
    int $0x12                   /* the firmware tells how much memory there is */
    movzx %ax, %esi
    cli
    mov %cr0, %eax
    or $1, %al
    mov %eax, %cr0
    ljmpl $0x08, $back_from_real
real_idt:
    .word 0x3ff
    .long 0
random_low_end:

    .code32
random_long:
    leave_protected
    mov %cr4, %eax
    mov %eax, old_cr4
    or $0x20, %eax              /* PAE */
    mov %eax, %cr4
    mov $random_pml4, %eax
    mov %eax, %cr3
    push %ecx
    mov $0xc0000080, %ecx
    rdmsr
    or $0x100, %eax             /* LME */
    wrmsr
    pop %ecx
    lgdt long_gdt_pointer
    mov %cr0, %eax
    or $0x80000000, %eax
    mov %eax, %cr0
    ljmp $0x28, $in_64
back_from_long:                 /* 32-bit code, with paging of long mode */
    mov %cr0, %eax
    and $0x7fffffff, %eax
    mov %eax, %cr0
    mov $0xc0000080, %ecx
    rdmsr
    and $~0x100, %eax
    wrmsr
    mov old_cr4, %eax
    mov %eax, %cr4
    enter_protected

    .code64
in_64:
    mov $0x123456789abcdef, %r8
    xor %r9, %r9
    mov $random_seen, %r15d
1:  rdtsc
    shl $32, %rdx
    or %rdx, %rax
    add %rax, %r8
    imul %r8, %r8
    rol $13, %r8
    adc %r8, %r9
    mov %rcx, %r10
    mov $0x1000100, %edi        /* the data of the blocks */
    mov $40, %ecx
    mov %r9, %rax
    rep stosq
    mov %r10, %rcx
    add 8(%r15), %r9
    incl 12(%r15)
    loop 1b
    mov %r8, 16(%r15)
    mov %r9, 24(%r15)
    pushq $0x08
    mov $back_from_long, %eax
    push %rax
    lretq

    .code32
    .data
    .align 8
long_gdt:
    .quad 0
    .quad 0x00cf9a000000ffff
    .quad 0x00cf92000000ffff
    .quad 0x00009a000000ffff
    .quad 0x000092000000ffff
    .quad 0x00af9a000000ffff    /* 0x28: 64-bit code */
long_gdt_pointer:
    .word . - long_gdt - 1
    .long long_gdt

    .bss
    .align 8
    .globl random_seen
random_seen: .space 32
where:       .space 4
target:      .space 4
old_esp:     .space 4
old_cr3:     .space 4
old_cr4:     .space 4
old_idt:     .space 8
old_gdt:     .space 8
