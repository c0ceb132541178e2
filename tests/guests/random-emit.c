/*
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Part of guest "random": see random-emit.h.
 */
#include "random-emit.h"

enum { EAX, ECX, EDX, EBX, ESP, EBP, ESI, EDI };
enum { ROOM = 160 };            /* no emitter needs more */

u8 block_code[CODE_BYTES] ALIGNED(4096);
u16 block_next[CODE_BYTES];
u32 dice_state;
volatile u32 block_turns;

static u8 *at, *last;
static u32 patches[PATCHES], n_patches;     /* immediates that may change */
static u32 opcodes[PATCHES], n_opcodes;     /* of equal length and effect on SP */
static u8 *skip_from;           /* a short jump whose distance is open */
static u32 skip_left;           /* over so many emitters more */

static void byte(u32 v)
{
    *at++ = (u8)v;
}

static void bytes2(u32 a, u32 b)
{
    byte(a);
    byte(b);
}

static void word32(u32 v)
{
    for (u32 i = 0; i < 4; i++, v >>= 8) {
        byte(v);
    }
}

/* The instruction that was emitted ends here. */
static void end(void)
{
    for (; last < at; last++) {
        block_next[last - block_code] = (u16)(at - block_code);
    }
}

static void land_skip(void)
{
    *skip_from = (u8)(at - skip_from - 1);
    skip_from = 0;
}

static u32 reg(void)
{
    u32 r = dice(7);

    return r < ESP ? r : r + 1;
}

/* A place for @n bytes, at times across two pages, at times by its alias. */
static u32 data_at(u32 n)
{
    u32 a = DATA + 8 + dice(DATA_BYTES - 16 - n);

    if (one_in(4)) {
        a = (a & ~4095u) + 4096 - 1 - dice(n);
        if (a < DATA + 8 || a + n + 16 > DATA + DATA_BYTES) {
            a = DATA + 64;
        }
    }
    return one_in(4) ? a - DATA + DATA_ALIAS : a;
}

static u32 code_alias(u32 address)
{
    return one_in(2) ? address : address - (u32)block_code + CODE_ALIAS;
}

static u32 device_at(void)
{
    static const u32 places[] = {
        0xfed000f0, 0xfed000f4, 0xfee00390, 0xfee00020, 0xfee000f0,
        0xfec00010, 0xfed00ffd, 0xfec01000, 0xa0000, 0xa0ffe, 0xb8000,
    };

    return places[dice(sizeof places / sizeof places[0])];
}

static void modrm_mem(u32 r, u32 address)
{
    byte(r << 3 | 5);
    word32(address);
}

static void set_reg(u32 r, u32 v)
{
    byte(0xb8 + r);
    word32(v);
    end();
}

/* ---- arithmetic ---- */

static void alu_regs(void)
{
    if (one_in(5)) {
        byte(0x66);
    }
    if (n_opcodes < PATCHES && one_in(3)) {
        opcodes[n_opcodes++] = (u32)at;
    }
    bytes2(dice(8) << 3 | 1 | (one_in(2) ? 2 : 0), 0xc0 | reg() << 3 | reg());
    end();
}

static void alu_immediate(void)
{
    bytes2(0x81, 0xc0 | dice(8) << 3 | reg());
    if (n_patches < PATCHES) {
        patches[n_patches++] = (u32)at;
    }
    word32(dice32());
    end();
}

static void alu_memory(void)
{
    byte(dice(8) << 3 | 1 | (one_in(2) ? 2 : 0));
    modrm_mem(reg(), data_at(4));
    end();
}

static void shift(void)
{
    static const u8 kinds[] = { 0, 1, 2, 3, 4, 5, 7 };
    u32 kind = kinds[dice(sizeof kinds)];

    switch (dice(4)) {
    case 0:
        bytes2(0xd3, 0xc0 | kind << 3 | reg());
        break;
    case 1:
        bytes2(0x0f, one_in(2) ? 0xa4 : 0xac);
        byte(0xc0 | reg() << 3 | reg());
        byte(dice(32));
        break;
    default:
        bytes2(0xc1, 0xc0 | kind << 3 | reg());
        byte(dice(32));
    }
    end();
}

/* DIV and IDIV fault often. */
static void multiply(void)
{
    bytes2(0xf7, 0xc0 | (2 + dice(6)) << 3 | reg());
    end();
}

static void bits(void)
{
    static const u8 by_reg[] = { 0xa3, 0xab, 0xb3, 0xbb, 0xbc, 0xbd, 0xaf,
                                 0xc1, 0xb1 };

    byte(0x0f);
    if (one_in(2)) {
        bytes2(by_reg[dice(sizeof by_reg)], 0xc0 | reg() << 3 | reg());
    } else {
        bytes2(0xba, 0xc0 | (4 + dice(4)) << 3 | reg());
        byte(dice(32));
    }
    end();
}

static void locked(void)
{
    static const u8 kinds[] = { 0xc1, 0xb1, 0xab, 0xb3, 0xbb };
    u32 kind = kinds[dice(sizeof kinds)];

    if (kind >= 0xb3 || kind == 0xab) {
        bytes2(0xf0, 0x0f);             /* a bit of a 32-bit word */
        byte(0xba);
        modrm_mem(5 + dice(3), data_at(4));
        byte(dice(32));
    } else {
        bytes2(0xf0, 0x0f);
        byte(kind);
        modrm_mem(reg(), data_at(4));
    }
    end();
}

static void odd_ones(void)
{
    static const u8 single[] = { 0x27, 0x2f, 0x37, 0x3f, 0x98, 0x99, 0x9e,
                                 0x9f, 0xf5, 0xf8, 0xf9, 0xd6, 0x90 };

    switch (dice(7)) {
    case 0:
        bytes2(0x0f, 0x90 + dice(16));          /* setcc */
        byte(0xc0 | dice(4));
        break;
    case 1:
        bytes2(0x0f, 0x40 + dice(16));          /* cmovcc */
        modrm_mem(reg(), data_at(4));
        break;
    case 2:
        bytes2(0x0f, 0xc8 + reg());             /* bswap */
        break;
    case 3:
        bytes2(0x0f, 0xb6 + dice(2) + (one_in(2) ? 8 : 0));
        modrm_mem(reg(), data_at(2));           /* movzx, movsx */
        break;
    case 4:
        bytes2(one_in(2) ? 0xd4 : 0xd5, dice(256));     /* aam (by 0!), aad */
        break;
    default:
        byte(single[dice(sizeof single)]);
    }
    end();
}

/* ---- memory ---- */

static void string(void)
{
    static const u8 kinds[] = { 0xa4, 0xa5, 0xaa, 0xab, 0xac, 0xad, 0xa6,
                                0xa7, 0xae, 0xaf };
    u32 count = dice(one_in(3) ? 1500 : 40), room = count * 4 + 8;
    u32 down = one_in(4);

    set_reg(ESI, data_at(2 * room) + (down ? room : 0));
    set_reg(EDI, data_at(2 * room) + (down ? room : 0));
    set_reg(ECX, count);
    if (down) {
        byte(0xfd);
        end();
    }
    bytes2(one_in(4) ? 0xf2 : 0xf3, kinds[dice(sizeof kinds)]);
    end();
    if (down) {
        byte(0xfc);
        end();
    }
}

static void stack(void)
{
    switch (dice(4)) {
    case 0:
        byte(0x60);                             /* pusha, popa */
        end();
        byte(0x61);
        break;
    case 1:
        bytes2(0xff, 0x35);                     /* push memory */
        word32(one_in(4) ? device_at() : data_at(4));
        end();
        bytes2(0x8f, 0x05);
        word32(data_at(4));
        break;
    default:
        byte(0x50 + reg());
        end();
        byte(0x58 + reg());
    }
    end();
}

/* Flags but those that stop or redirect; STI and MOV SS have a shadow. */
static void flags(void)
{
    switch (dice(4)) {
    case 0:
        byte(0xfa);                             /* cli */
        end();
        alu_regs();
        byte(0xfb);                             /* sti */
        end();
        break;
    case 1:
        bytes2(0x66, 0x8c);                     /* mov %ss, %ax */
        byte(0xd0);
        end();
        bytes2(0x8e, 0xd0);
        end();
        break;
    default:
        byte(0x9c);
        end();
        bytes2(0x81, 0x34);
        byte(0x24);
        word32(dice32() & 0x8d5);
        end();
        byte(0x9d);
        end();
    }
}

/* ---- code that changes ---- */

static void patch_code(void)
{
    u32 to;

    if (!n_patches) {
        return;
    }
    to = code_alias(patches[dice(n_patches)]);
    switch (dice(5)) {
    case 0:
        byte(0xa2);                             /* mov %al */
        word32(to + dice(4));
        break;
    case 1:
        bytes2(0xff, 0x05);                     /* inc */
        word32(to);
        break;
    case 2:
        bytes2(0xc7, 0x05);                     /* mov $ */
        word32(to);
        word32(dice32());
        break;
    case 3:
        byte(0x89);
        modrm_mem(reg(), to);
        break;
    default:
        if (n_opcodes) {
            bytes2(0xc6, 0x05);
            word32(code_alias(opcodes[dice(n_opcodes)]));
            byte(dice(8) << 3 | 1);
        } else {
            byte(0x90);
        }
    }
    end();
}

/* Code copied over itself: nothing changes, but translations must not live on. */
static void copy_code(void)
{
    u32 n = 1 + dice(200), from = (u32)block_code + dice(CODE_BYTES - n);

    set_reg(ESI, code_alias(from));
    set_reg(EDI, code_alias(from));
    set_reg(ECX, n);
    bytes2(0xf3, 0xa4);
    end();
}

/* ---- control ---- */

static void skip_some(void)
{
    if (!skip_from) {
        bytes2(0x70 + dice(16), 0);
        skip_from = at - 1;
        skip_left = 2 + dice(2);                /* this one counts, too */
        end();
    }
}

static void far_away(void)
{
    switch (dice(4)) {
    case 0:
        byte(0xe8);                             /* call the next, drop it */
        word32(0);
        end();
        byte(0x58 + reg());
        break;
    case 1:
        byte(0xea);                             /* far jump to the next */
        word32((u32)at + 6);
        bytes2(8, 0);
        break;
    case 2:
        byte(0xb8);
        word32((u32)at + 6);                    /* jump by register */
        end();
        bytes2(0xff, 0xe0);
        break;
    default:
        byte(0x68);
        word32((u32)at + 5);                    /* return to the next */
        end();
        byte(0xc3);
    }
    end();
}

static void fault(void)
{
    static const u8 codes[][8] = {
        { 2, 0x0f, 0x0b }, { 1, 0xcc }, { 2, 0xcd, 3 }, { 1, 0xce },
        { 5, 0xa1, 0, 0, 0, 0xf0 }, { 2, 0x8e, 0xc4 }, { 2, 0xcd, 45 },
        { 6, 0xff, 0x05, 0, 0, 0, 0xf0 },
    };
    const u8 *code = codes[dice(sizeof codes / sizeof codes[0])];

    for (u32 i = 1; i <= code[0]; i++) {
        byte(code[i]);
    }
    end();
}

/* Steps of one instruction: the handler says when that is over. */
static void single_step(void)
{
    byte(0x9c);
    end();
    bytes2(0x81, 0x0c);
    byte(0x24);
    word32(0x100);
    end();
    byte(0x9d);
    end();
}

static void halt(void)
{
    bytes2(0xfb, 0xf4);                         /* STI; HLT */
    at--;
    end();
    at++;
    end();
}

/* ---- inputs ---- */

static void port(void)
{
    static const u16 in[] = { 0x40, 0x42, 0x61, 0x71, 0x92, 0x64, 0x3fa, 0x511,
                              0xcfc, 0x608, 0x80, 0x21, 0xb3, 0x1234 };
    u32 p = in[dice(sizeof in / sizeof in[0])];

    switch (dice(5)) {
    case 0:
        set_reg(EDX, one_in(2) ? 0x80 : 0xb3);
        byte(0xee + dice(2));
        break;
    case 1:
        set_reg(EDX, p);
        set_reg(EDI, data_at(400));
        set_reg(ECX, dice(60));
        bytes2(0xf3, 0x6c + dice(2));
        break;
    case 2:
        set_reg(EDX, 0x80);
        set_reg(ESI, data_at(400));
        set_reg(ECX, dice(30));
        bytes2(0xf3, 0x6e + dice(2));
        break;
    default:
        set_reg(EDX, p);
        byte(0xec + dice(2));
    }
    end();
}

static void device(void)
{
    if (one_in(6)) {
        set_reg(ESI, one_in(2) ? 0xfed000f0 - 16 : 0xa0000);
        set_reg(EDI, data_at(400));
        set_reg(ECX, 1 + dice(20));
        bytes2(0xf3, 0xa5);
    } else if (one_in(3)) {
        byte(dice(8) << 3 | 1);                 /* changes video memory */
        modrm_mem(reg(), 0xa0000 + dice(0x1000));
    } else {
        byte(dice(8) << 3 | 3);
        modrm_mem(reg(), device_at());
    }
    end();
}

static void values(void)
{
    static const u32 msrs[] = { 0x10, 0x1b, 0x277, 0xfe, 0xc0000080, 0x1234 };

    switch (dice(5)) {
    case 0:
        bytes2(0x0f, 0x31);                     /* rdtsc */
        break;
    case 1:
        set_reg(EAX, dice(16) | (one_in(3) ? 0x80000000u : 0));
        bytes2(0x0f, 0xa2);                     /* cpuid */
        break;
    case 2:
        set_reg(ECX, msrs[dice(sizeof msrs / sizeof msrs[0])]);
        bytes2(0x0f, 0x32);                     /* rdmsr */
        break;
    case 3:
        bytes2(0x0f, 0xc7);                     /* rdrand, rdseed */
        byte(0xf0 + (one_in(2) ? 8 : 0) + reg());
        break;
    default:
        bytes2(0x0f, 0x01);                     /* rdtscp */
        byte(0xf9);
    }
    end();
}

/* ---- pages ---- */

static void page_tables(void)
{
    u32 page = data_at(4);
    u32 pte = (u32)rt_pte(page);

    switch (dice(6)) {
    case 0:
        bytes2(0x81, 0x25);                     /* nobody's TLB is told */
        word32(pte);
        word32(~(u32)(PTE_A | PTE_D));
        break;
    case 1:
        bytes2(0x81, 0x25);
        word32(pte);
        word32(~(u32)(one_in(2) ? PTE_P : PTE_W));
        break;
    case 2:
        bytes2(0x0f, 0x01);                     /* invlpg */
        modrm_mem(7, page);
        break;
    case 3:
        bytes2(0x0f, 0x20);                     /* CR3 to itself */
        byte(0xd8);
        end();
        bytes2(0x0f, 0x22);
        byte(0xd8);
        break;
    default:
        byte(0x0b);                             /* looks at the bits */
        modrm_mem(reg(), pte);
    }
    end();
}

/* ---- floating point ---- */

static void x87(void)
{
    static const u8 codes[][2] = {
        { 0xd9, 0xe8 }, { 0xd9, 0xeb }, { 0xd9, 0xea }, { 0xde, 0xc1 },
        { 0xde, 0xc9 }, { 0xde, 0xf9 }, { 0xd9, 0xfa }, { 0xd9, 0xfe },
        { 0xd9, 0xf2 }, { 0xdb, 0xe3 }, { 0xd9, 0xc9 }, { 0xdf, 0xe0 },
    };
    u32 kind = dice(sizeof codes / sizeof codes[0] + 4);

    if (kind >= 4) {
        bytes2(codes[kind - 4][0], codes[kind - 4][1]);
    } else {
        static const u8 memory[][2] = { { 0xdd, 3 }, { 0xdb, 3 }, { 0xdb, 0 },
                                        { 0xdd, 0 } };
        byte(memory[kind][0]);
        modrm_mem(memory[kind][1], data_at(8));
    }
    end();
}

static void sse(void)
{
    static const u8 kinds[] = { 0x58, 0x59, 0x5c, 0x5e, 0x51, 0x5b, 0x57, 0x14,
                                0xef, 0xfe, 0xf4, 0xd5, 0x6a, 0x60 };
    u32 kind = kinds[dice(sizeof kinds)];

    switch (dice(3)) {
    case 0:
        bytes2(0x0f, 0x10 + dice(2));           /* movups */
        modrm_mem(dice(8), data_at(16));
        break;
    case 1:
        if (kind >= 0x60) {
            byte(0x66);
        }
        bytes2(0x0f, kind);
        byte(0xc0 | dice(64));
        break;
    default:
        bytes2(0x66, 0x0f);                     /* movd to a register */
        byte(0x7e);
        byte(0xc0 | dice(8) << 3 | reg());
    }
    end();
}

/* ---- a block ---- */

static const struct {
    void (*emit)(void);
    u32 weight;
} emitters[] = {
    { alu_regs, 30 }, { alu_immediate, 24 }, { alu_memory, 20 }, { shift, 12 },
    { multiply, 6 }, { bits, 12 }, { locked, 6 }, { odd_ones, 12 },
    { string, 8 }, { stack, 8 }, { flags, 6 }, { patch_code, 10 },
    { copy_code, 2 }, { skip_some, 12 }, { far_away, 6 }, { fault, 8 },
    { single_step, 2 }, { halt, 1 }, { port, 5 }, { device, 5 },
    { values, 6 }, { page_tables, 10 }, { x87, 8 }, { sse, 8 },
};

static void emit_one(void)
{
    u32 all = 0, n, i;

    for (i = 0; i < sizeof emitters / sizeof emitters[0]; i++) {
        all += emitters[i].weight;
    }
    n = dice(all);
    for (i = 0; n >= emitters[i].weight; i++) {
        n -= emitters[i].weight;
    }
    emitters[i].emit();
}

void *emit_block(u32 offset, u32 count)
{
    u8 *entry = block_code + offset;

    at = last = entry;
    n_patches = n_opcodes = 0;
    skip_from = 0;
    while (count-- && at + ROOM < block_code + CODE_BYTES) {
        emit_one();
        if (skip_from && --skip_left == 0) {
            land_skip();
        }
    }
    if (skip_from) {
        land_skip();
    }
    bytes2(0xff, 0x0d);                         /* one turn less */
    word32((u32)&block_turns);
    end();
    bytes2(0x0f, 0x85);
    word32((u32)entry - (u32)at - 4);
    end();
    byte(0xc3);
    end();
    return entry;
}
