/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Half a store, as KVM leaves it. A move from a device to RAM (MOVS) is emulated by KVM,
 * which stores page after page: if the operand lies in two pages and the second one
 * faults, what belongs into the first is there already. A CPU, and TCG, looks at both
 * pages first. The bytes become an event of guest RAM after the fault, so that the new
 * log says what the recorded machine saw.
 */
#include "qemu/osdep.h"
#include "tt-convert-parts-int.h"
#include "accel-tt/tt-position.h"
#include "hw-tt/memory/tt-memory.h"
#include "cpu.h"
#include "exec/address-spaces.h"
#include "exec/memory.h"

#define LOAD_MAX 8

static struct {
    uint64_t pos, end;              /* after the instruction; after the last byte */
    uint8_t bytes[LOAD_MAX];
    unsigned n;
} load;                             /* from a device, of the last instruction with one */

static struct {
    TtEvent ev;
    uint8_t bytes[LOAD_MAX];
    bool is_due;
} half;

void tt_convert_note_load(uint64_t addr, const uint8_t *bytes, unsigned n)
{
    if (load.pos != tt_position() || load.end != addr || load.n + n > LOAD_MAX) {
        load.pos = tt_position();
        load.n = 0;
    }
    memcpy(load.bytes + load.n, bytes, n);
    load.n += n;
    load.end = addr + n;
}

/* Of the bytes that MOVS stores at ES:RDI, so many lie before the page that faulted. RDI
 * is still that of the instruction; its size is not known any more. */
static unsigned bytes_before(CPUX86State *env, uint64_t *addr)
{
    static const uint64_t masks[] = { UINT64_MAX, UINT32_MAX, UINT16_MAX };

    for (int i = 0; i < ARRAY_SIZE(masks); i++) {
        *addr = env->segs[R_ES].base + (env->regs[R_EDI] & masks[i]);
        if (*addr < env->cr[2] && env->cr[2] - *addr < load.n) {
            return env->cr[2] - *addr;
        }
    }
    return 0;
}

/* The RAM behind the guest's address @addr. */
static bool find_ram(CPUState *cpu, uint64_t addr, TtEvent *ev)
{
    hwaddr page = cpu_get_phys_page_debug(cpu, addr & TARGET_PAGE_MASK), len = 1, xlat;
    MemoryRegion *mr;
    uint64_t offset = 0;
    uint32_t block;

    if (page == -1) {
        return false;
    }
    RCU_READ_LOCK_GUARD();
    mr = address_space_translate(&address_space_memory,
                                 page | (addr & ~TARGET_PAGE_MASK), &xlat, &len, true,
                                 MEMTXATTRS_UNSPECIFIED);
    if (!memory_region_is_ram(mr) || mr->readonly) {
        return false;
    }
    block = tt_memory_locate((uint8_t *)memory_region_get_ram_ptr(mr) + xlat, &offset);
    ev->addr = block;
    ev->val = offset;
    return block != UINT32_MAX;
}

void tt_convert_excepted(CPUState *cpu)
{
    CPUX86State *env = cpu_env(cpu);
    uint64_t addr;

    if (load.n && load.pos == tt_now.pos + 1 && env->error_code & PG_ERROR_W_MASK &&
        !(env->cr[2] & ~TARGET_PAGE_MASK)) {
        half.ev = (TtEvent) {
            .kind = TT_EV_RAM, .len = bytes_before(env, &addr), .data = half.bytes,
        };
        memcpy(half.bytes, load.bytes, half.ev.len);
        half.is_due = half.ev.len && find_ram(cpu, addr, &half.ev);
    }
}

bool tt_convert_owes_half(void)
{
    return half.is_due;
}

const TtEvent *tt_convert_take_half(void)
{
    if (!half.is_due) {
        return NULL;
    }
    half.is_due = false;
    return &half.ev;
}
