/*
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Guest "cpueq64": executes random operands and prints hashes of what came out, to be
 * compared with a real CPU by tests/cpu-equal. Options: count=N cases of each form
 * (2000), from=N (0), blocks=N hashes of them (1), op=N that form alone, class=N that
 * class alone, detail=1: each case with its state.
 */
#include "rt64.h"
#include "cpueq.h"
#include "cpueq-main.h"

const char guest_name[] = "cpueq64";

void on_trap(u64 *stack);
void on_trap(u64 *stack)
{
    put_str("trap at ");
    put_hex(stack[stack[1] == 8 ? 0 : 1]);
    power_off();
}

extern void trap_stub(void);

static void set_traps(void)
{
    static struct gate {
        unsigned short low, selector, type, middle;
        u32 high, zero;
    } idt[32];
    struct {
        unsigned short limit;
        void *base;
    } __attribute__((packed)) p = { sizeof(idt) - 1, idt };
    u64 stub = (u64)trap_stub;

    for (int i = 0; i < 32; i++) {
        idt[i] = (struct gate) { (unsigned short)stub, 8, 0x8e00,
                                 (unsigned short)(stub >> 16), 0, 0 };
    }
    __asm__ volatile("lidt %0" :: "m"(p));
}

void start64(const u32 *multiboot);
void start64(const u32 *multiboot)
{
    if (multiboot[0] & 4) {
        command_line = (const char *)(u64)multiboot[4];
    }
    set_traps();
    __asm__ volatile("mov %%cr4, %%rax; or $0x600, %%eax; mov %%rax, %%cr4\n\t"
                     "mov %%cr0, %%rax; and $~4, %%eax; or $0x22, %%eax\n\t"
                     "mov %%rax, %%cr0; fninit" ::: "rax");
    eq_main();
    put_str("end");
    power_off();
}
