/*
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Assembly of guest "smc": loops that store into their own instructions.
 */
    .text
    .globl smc_next, smc_earlier, smc_string, smc_beside, smc_beside_end

/* u32 smc_next(u32 times): the store hits the instruction right behind it */
smc_next:
    mov 4(%esp), %ecx
    xor %eax, %eax
1:  movb %cl, 2f + 2
2:  add $1, %eax
    rol $1, %eax
    dec %ecx
    jnz 1b
    ret

/* u32 smc_earlier(u32 times): the store hits one that already ran */
smc_earlier:
    mov 4(%esp), %ecx
    xor %eax, %eax
3:  add $1, %eax
    rol $3, %eax
    nop
    incb 3b + 2
    dec %ecx
    jnz 3b
    ret

/* u32 smc_string(u32 times): rep stosb over three nops that follow it */
smc_string:
    push %edi
    push %ebx
    mov 12(%esp), %ebx
    xor %edx, %edx
4:  mov $5f, %edi
    mov $3, %ecx
    mov $0x90, %al              /* nop */
    test $1, %bl
    jz 6f
    mov $0x42, %al              /* inc %edx */
6:  rep stosb
5:  nop
    nop
    nop
    rol $1, %edx
    dec %ebx
    jnz 4b
    mov %edx, %eax
    pop %ebx
    pop %edi
    ret

/* Copied to RAM: u32 f(u32 times) counts in memory right behind its code */
smc_beside:
    mov 4(%esp), %ecx
    call 7f
7:  pop %edx
    movl $0, 9f - 7b(%edx)
8:  incl 9f - 7b(%edx)
    dec %ecx
    jnz 8b
    mov 9f - 7b(%edx), %eax
    ret
9:  .long 0
smc_beside_end:
