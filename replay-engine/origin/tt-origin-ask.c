/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The places that are asked about: taken from an expression or an operand, where they are
 * in RAM, and what is there now.
 */
#include "qemu/osdep.h"
#include "tt-origin-ask-int.h"
#include "tt-origin-queue-int.h"
#include "accel-tt/tt-vcpus.h"
#include "accel-tt/x86/tt-x86-regs.h"
#include "debug/tt-cond.h"
#include "hw-tt/memory/tt-memory-watch.h"
#include "qapi/error.h"
#include "exec/cpu-common.h"
#include "exec/memory.h"
#include "exec/target_page.h"
#include "hw/core/cpu.h"

static TtFlowDecoder *decoder;

TtFlowDecoder *tt_origin_decoder(void)
{
    decoder = decoder ?: tt_flow_new();
    return decoder;
}

/* ---- what is there ---- */

bool tt_origin_ram(unsigned cpu, uint64_t addr, uint64_t *ram, unsigned *len,
                   uint64_t *physical)
{
    return tt_memory_ram_at(tt_vcpus_at(cpu), addr, ram, len, physical);
}

bool tt_origin_read(const TtOriginPlace *place, uint8_t *value)
{
    CPUState *cpu = tt_vcpus_at(place->cpu);
    uint8_t whole[32] = { 0 };

    if (place->at.kind == TT_FLOW_AT_MEM) {
        return cpu_memory_rw_debug(cpu, place->at.addr, value, place->at.len, false) == 0;
    }
    if (place->at.reg < TT_FLOW_GENERAL) {
        static const uint8_t order[] = {
            TT_COND_RAX, TT_COND_RCX, TT_COND_RDX, TT_COND_RBX,
            TT_COND_RSP, TT_COND_RBP, TT_COND_RSI, TT_COND_RDI,
        };
        unsigned n = place->at.reg;
        uint64_t v = tt_target_reg(cpu, n < 8 ? order[n] : TT_COND_R8 + n - 8);

        memcpy(whole, &v, sizeof(v));
    } else {
        tt_target_vector(cpu, place->at.reg - TT_FLOW_GENERAL, whole);
    }
    memcpy(value, whole + place->at.first, place->at.len);
    return true;
}

/* ---- questions ---- */

void tt_origin_put_place(const TtFlowPlace *place, unsigned cpu, TtOriginQuestion *q)
{
    TtFlowPlace rest = *place;

    while (rest.len) {
        TtOriginQuestion one = *q;
        uint64_t physical = UINT64_MAX;
        unsigned left = rest.len;

        one.place = (TtOriginPlace) { .at = rest, .cpu = cpu };
        if (rest.kind == TT_FLOW_AT_MEM &&
            !tt_origin_ram(cpu, rest.addr, &one.place.ram, &left, &physical)) {
            tt_origin_say("leaf parent=%u how=%s place=0x%" PRIx64 ":%u physical=0x%"
                          PRIx64, q->parent, physical == UINT64_MAX ? "unmapped" : "mmio",
                          rest.addr, rest.len, physical);
            return;
        }
        one.place.at.len = MIN(MIN(rest.len, left), TT_ORIGIN_BYTES_MAX);
        if (tt_origin_read(&one.place, one.value)) {
            tt_origin_put(&one);
        } else {
            tt_origin_say_cut(&one);
        }
        rest.first += rest.kind == TT_FLOW_AT_REG ? one.place.at.len : 0;
        rest.addr += one.place.at.len;
        rest.len -= one.place.at.len;
    }
}

/* ---- expressions ---- */

typedef struct Reads {
    CPUState *cpu;
    TtFlowPlace last;               /* memory that was read last */
    uint64_t value;
    bool has;
} Reads;

static bool read_reg(void *opaque, TtCondReg reg, uint64_t *value)
{
    *value = tt_target_reg(((Reads *)opaque)->cpu, reg);
    return true;
}

static bool read_mem(void *opaque, uint64_t addr, uint8_t *bytes, unsigned len)
{
    Reads *r = opaque;

    r->last = (TtFlowPlace) { .kind = TT_FLOW_AT_MEM, .addr = addr, .len = len };
    r->has = cpu_memory_rw_debug(r->cpu, addr, bytes, len, false) == 0;
    return r->has;
}

bool tt_origin_parse(const char *text, TtFlowPlace *place, Error **errp)
{
    Reads r = { .cpu = tt_vcpu() };
    const TtCondSource source = { .opaque = &r, .reg = read_reg, .mem = read_mem };
    uint64_t value;
    TtCond *c;
    TtDiag diag;
    bool ok;

    if (tt_flow_place_asked(text, text, place, &c, &diag) != TT_OK) {
        error_setg(errp, "%s", diag.text);
        return false;
    }
    if (!c) {
        return true;
    }
    ok = tt_cond_eval(c, &source, &value) == TT_OK && r.has;
    tt_cond_free(c);
    if (!ok) {
        error_setg(errp, "'%s' cannot be read there: the memory is not mapped at that "
                   "position", text);
        return false;
    }
    *place = r.last;
    return true;
}
