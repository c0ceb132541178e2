/*
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Assembly parts of guest "torture": short trap-gate handlers and the two
 * loops whose every instruction they and the timer may interrupt.
 */
    .text
    .globl torture_pf, torture_ud, torture_bp, torture_faults, torture_smc

torture_pf:                     /* interrupts are on: a trap gate */
    nop
    add $4, %esp                /* the error code */
    incl torture_npf
    addl $6, (%esp)             /* past mov disp32, %ecx */
    iret
torture_ud:
    incl torture_nud
    addl $2, (%esp)             /* past ud2 */
    iret
torture_bp:
    incl torture_nbp
    iret

/* void torture_faults(u32 times): not-present load, ud2, int3, int $3 */
torture_faults:
    mov 4(%esp), %edx
1:  mov 0xF0000000, %ecx
    ud2
    int3
    int $3
    dec %edx
    jnz 1b
    ret

/* u32 torture_smc(u32 times): an add whose operand changes each turn */
torture_smc:
    mov 4(%esp), %edx
    xor %eax, %eax
    test %edx, %edx
    jz 4f
2:  incb 3f + 2
    jmp 3f
3:  add $1, %eax
    rol $3, %eax
    dec %edx
    jnz 2b
4:  movb $1, 3b + 2
    ret

    .bss
    .align 4
    .globl torture_npf, torture_nud, torture_nbp
torture_npf: .space 4
torture_nud: .space 4
torture_nbp: .space 4
