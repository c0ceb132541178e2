/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Firmware of the golden runs: a machine of one MiB that does a little of
 * everything that a log can hold (ports, timer interrupts, HLT, time stamps, CPUID,
 * DMA by fw_cfg), prints over COM1, and ends by a triple fault.
 *
 * It is here to say what the packed runs beside it are; they are never made again.
 *   gcc -m32 -c tiny.S && ld -m elf_i386 -Ttext 0 --oformat binary -e 0 tiny.o
 * gives the 64 KiB of the ROM. With -DTICKS=60 -DROUNDS=40 it is that of kvm-exits,
 * which was recorded under KVM: it works longer than there is no exit. TICKS=150 is that
 * of kvm-checkpoints.
 */
#ifndef TICKS
#define TICKS 600
#endif
    .code16
    .text
start:
    cli
    xorw %ax, %ax
    movw %ax, %ds
    movw %ax, %es
    movw %ax, %ss
    movw $0x7000, %sp
    movw $tick, 0x80            /* vector 0x20 */
    movw $0xf000, 0x82
    movw $0, 0x500              /* ticks */
    movl $0, 0x504              /* sum */
    movb $0x11, %al             /* the interrupt controllers */
    outb %al, $0x20
    outb %al, $0xa0
    movb $0x20, %al
    outb %al, $0x21
    movb $0x28, %al
    outb %al, $0xa1
    movb $4, %al
    outb %al, $0x21
    movb $2, %al
    outb %al, $0xa1
    movb $1, %al
    outb %al, $0x21
    outb %al, $0xa1
    movb $0xfe, %al
    outb %al, $0x21
    movb $0xff, %al
    outb %al, $0xa1
    movb $0x34, %al             /* the timer: 1193 counts, 1 ms */
    outb %al, $0x43
    movb $0xa9, %al
    outb %al, $0x40
    movb $0x04, %al
    outb %al, $0x40
#ifdef ROUNDS
    movl $0x1b, %ecx            /* no local APIC between them and the CPU */
    rdmsr
    andl $~0x800, %eax
    wrmsr
#endif
    xorl %eax, %eax
    cpuid
    addl %ebx, 0x504
    call dma
main:
#ifdef ROUNDS
    movw $ROUNDS, %bp
0:
#endif
    movw $0x4000, %cx           /* work between two ticks */
    movw $0x8000, %di
1:  movw %cx, (%di)
    addw (%di), %ax
    addw %ax, 0x504
    incw %di
    andw $0x8fff, %di
    loop 1b
#ifdef ROUNDS
    decw %bp
    jnz 0b
#endif
    rdtsc
    xorl %eax, 0x504
    sti
    hlt
    cli
    cmpw $TICKS, 0x500
    jb main
    movl 0x504, %eax
    movw $8, %cx
2:  roll $4, %eax
    pushl %eax
    andb $15, %al
    addb $'a', %al
    call put
    popl %eax
    loop 2b
    movb $'\n', %al
    call put
    lidtl %cs:nothing
    int3                        /* which cannot be delivered */

/* The first bytes of fw_cfg (its signature), by DMA to 0x600. */
dma:
    movl $0x0a000000, 0x610     /* select and read item 0 */
    movl $0x04000000, 0x614     /* four bytes */
    movl $0, 0x618
    movl $0x00060000, 0x61c     /* to 0x600; all big-endian */
    movw $0x518, %dx
    movl $0x10060000, %eax      /* the request is at 0x610 */
    outl %eax, %dx
    movl 0x600, %eax
    addl %eax, 0x504
    ret

put:
    movw $0x3f8, %dx
    outb %al, %dx
    ret

tick:
    pushw %ax
    pushw %dx
    incw 0x500
    movb $'.', %al
    call put
    movb $0x20, %al
    outb %al, $0x20
    popw %dx
    popw %ax
    iretw

nothing:
    .word 0
    .long 0

    .org 0xfff0
    ljmpw $0xf000, $start
    .org 0xffff
    .byte 0
