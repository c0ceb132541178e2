/*
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Assembly of guest "exceptions". The handlers are as short as they can be,
 * so that an interrupt often comes right at their first instruction; the
 * faulting instructions stand in the middle of straight code.
 */
    .text
    .globl exc_skip2, exc_skip6_err, exc_count, exc_loop

exc_skip2:                      /* #DE at div %cl, #UD at ud2 */
    addl $2, (%esp)
    incl exc_counts
    iret
exc_skip6_err:                  /* #PF at a load with a 32-bit address */
    add $4, %esp
    addl $6, (%esp)
    incl exc_counts + 4
    iret
exc_count:                      /* INT3, two instructions after a fault */
    testl $0x10000, 8(%esp)     /* RF must be off again by now */
    jz 2f
    incl exc_counts + 12
2:  incl exc_counts + 8
    iret

/* u32 exc_loop(u32 times, u32 mix) */
exc_loop:
    push %ebx
    push %esi
    mov 12(%esp), %edx
    mov 16(%esp), %eax
1:  lea 7(%eax), %ebx
    rol $5, %eax
    xor %edx, %eax
    mov 0xf0000000, %ecx        /* #PF after three instructions */
    add %ebx, %eax
    imul $17, %eax, %eax
    ud2
    mov %eax, %esi
    xor %ecx, %ecx
    div %cl                     /* #DE */
    add %esi, %eax
    int3
    rol $3, %eax
    mov %eax, 0xf0000004(%ecx)  /* #PF on a store, with disp32 */
    dec %edx
    jnz 1b
    pop %esi
    pop %ebx
    ret

    .bss
    .align 4
    .globl exc_counts
exc_counts: .space 16
