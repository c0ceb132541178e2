/*
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Assembly of guest "debug": a loop with a place to break and a word to watch.
 */
    .text
    .globl debug_work, debug_here

/* u32 debug_work(u32 times, volatile u32 *word) */
debug_work:
    mov 4(%esp), %ecx
    mov 8(%esp), %edx
    mov $1, %eax
1:  lea 3(%eax, %eax, 2), %eax
debug_here:
    rol $5, %eax
    test $3, %cl
    jnz 2f
    mov %eax, (%edx)
    addl $1, (%edx)
2:  xor (%edx), %eax
    dec %ecx
    jnz 1b
    ret
