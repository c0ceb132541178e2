/*
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * A 64-bit guest whose variables have all kinds of C's types: structs in each other and
 * without names, unions, bit-fields, enumerations, arrays, lists. A loop changes them, and
 * writes some again as they are. Option: rounds=N (6).
 */
#include "rt64.h"

const char guest_name[] = "types64";

enum color { RED = -1, GREEN = 5, BLUE };

typedef struct list {
    struct list *next, *prev;
} list_t;

struct inner {
    unsigned short a;
    signed char b[3];
};

struct thing {
    u32 first : 3;
    int second : 7;
    u64 third : 40;
    union {
        u32 word;
        u8 bytes[4];
    };
    struct {
        list_t list;
        struct inner in[2][3];
    };
    enum color color;
    _Bool flag;
    struct thing *self;
    const char *volatile name;
};

struct hidden;
extern struct hidden *nowhere;
struct hidden *nowhere;

struct thing table[4];
struct thing *current_thing = table;
int panic_timeout = -7;
static volatile u64 same;       /* is always written with what it has */
volatile u32 stamp;

static void step(u64 i);

static void __attribute__((noinline)) step(u64 i)
{
    struct thing *local = &table[i & 3];

    current_thing = local;
    local->first = i + 5;
    local->second = -(int)i;
    local->third += 0x123456789;
    local->word = i * 0x01010101 + 0xf0;
    local->in[i & 1][2].a = i * 77;
    local->in[1][i % 3].b[1] = -(signed char)i;
    local->color = i % 3 ? i % 3 == 1 ? RED : GREEN : BLUE;
    local->flag = i & 1;
    local->list.next = &table[(i + 1) & 3].list;
    local->self = local;
    local->name = i & 1 ? "odd" : "even";
    panic_timeout++;
    same = same;
    stamp = i;
    stamp = i;
}

void start64(const u32 *multiboot)
{
    u64 rounds;

    take_options(multiboot);
    rounds = option("rounds", 6);
    for (u64 i = 0; i < rounds; i++) {
        step(i);
    }
    put_str("types64: end panic_timeout=");
    put_hex((u64)panic_timeout);
    power_off();
}
