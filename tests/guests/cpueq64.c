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

void start64(const u32 *multiboot)
{
    take_options(multiboot);
    set_traps();
    __asm__ volatile("mov %%cr4, %%rax; or $0x600, %%eax; mov %%rax, %%cr4\n\t"
                     "mov %%cr0, %%rax; and $~4, %%eax; or $0x22, %%eax\n\t"
                     "mov %%rax, %%cr0; fninit" ::: "rax");
    eq_main();
    put_str("end");
    power_off();
}
