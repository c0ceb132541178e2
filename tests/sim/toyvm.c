/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The toy VM: see toyvm.h.
 */
#include "toyvm.h"

#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

static uint64_t mix(uint64_t a, uint64_t b)
{
    uint64_t h = (a ^ b * 0x9e3779b97f4a7c15ull) * 0xbf58476d1ce4e5b9ull;

    h = (h ^ h >> 31) * 0x94d049bb133111ebull;
    return h ^ h >> 29;
}

void toyvm_reset(ToyVm *vm, uint32_t seed)
{
    memset(vm, 0, sizeof(*vm));
    vm->seed = seed;
    vm->regs.acc = mix(seed, 1);
}

static void write_word(ToyVm *vm, unsigned page, unsigned offset,
                       uint64_t value)
{
    memcpy(vm->ram[page] + offset, &value, sizeof(value));
    vm->is_dirty[page] = true;
    vm->was_written[page] = true;
}

/*
 * One position: reads a word, mixes it with the input, and then, by turns,
 * writes it, clears a page (so that zero pages come and go), writes a word
 * back as it was (a write that leaves no trace), or writes nothing. Low pages
 * are written often and high ones seldom, as in a real guest.
 */
static void one_position(ToyVm *vm)
{
    ToyRegs *r = &vm->regs;
    unsigned page = __builtin_ctzll(r->acc | 1ull << (TOYVM_PAGES - 1));
    unsigned offset = (r->acc >> 20) % (TOYVM_PAGE / 8) * 8;
    uint64_t word;

    memcpy(&word, vm->ram[page] + offset, sizeof(word));
    r->acc = mix(r->acc ^ word, mix(vm->seed, r->pos));
    r->pos++;
    switch (r->acc >> 60) {
    case 0:
        memset(vm->ram[page], 0, TOYVM_PAGE);
        write_word(vm, page, 0, 0);
        break;
    case 1:
    case 2:
        write_word(vm, page, offset, word);
        break;
    case 3 ... 9:
        write_word(vm, page, offset, r->acc);
        break;
    default:
        break;
    }
}

void toyvm_step(ToyVm *vm)
{
    memset(vm->was_written, 0, sizeof(vm->was_written));
    do {
        one_position(vm);
    } while ((vm->regs.acc >> 40) % 16 == 0);
}

bool toyvm_at_break(const ToyVm *vm, const ToyStops *stops)
{
    return stops->break_modulus && vm->regs.acc % stops->break_modulus == 0;
}

bool toyvm_at_watch(const ToyVm *vm, const ToyStops *stops)
{
    return stops->watch_page >= 0 && vm->was_written[stops->watch_page];
}

uint64_t toyvm_digest(const ToyVm *vm)
{
    return XXH3_64bits_withSeed(vm->ram, sizeof(vm->ram),
                                mix(vm->regs.pos, vm->regs.acc));
}
