/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Inputs of the vCPU: the hooks that its helpers call. Recording lets the device
 * answer and writes the answer down; a replay gives the answer of the log and
 * runs no device. One function, sync_event, is the meeting point of both.
 */
#include "qemu/osdep.h"
#include "accel-tt/tt-inputs.h"
#include "accel-tt/tt-position.h"
#include "accel-tt/tt-token.h"
#include "accel-tt/tt-vcpus.h"
#include "accel-tt/x86/tt-target.h"
#include "io/tt-base.h"
#include "log/tt-log.h"
#include "session/tt-ops.h"
#include "session/tt-session.h"
#include "tt/hooks.h"
#include "hw/core/cpu.h"
#include "cpu.h"
#include "qemu/main-loop.h"
#include "exec/address-spaces.h"
#include "exec/memory.h"
#include "exec/memattrs.h"
#include "system/cpu-timers.h"

void (*tt_settle_slow)(void);
bool tt_like_hardware, tt_fetch_names_page, tt_replays_kvm;

static void sync_event(TtEvent *ev)
{
    if (!tt_session.live) {
        return;
    }
    if (tt_recording() &&
        (ev->kind == TT_EV_PIO_OUT || ev->kind == TT_EV_MMIO_ST)) {
        ev->pos = tt_position();
        tt_fold_output(ev);
    }
    tt_ops->answer(ev);
}

/* ---- device calls ---- */

static uint64_t flags_before[TT_VCPUS_MAX][4];
static uint64_t regs_before[TT_TARGET_REGS];

void tt_device_enter(void)
{
    if (!tt_on()) {
        return;
    }
    if (tt_now.device_depth++ == 0 && tt_recording()) {
        tt_settle();
        for (unsigned i = 0; i < tt_vcpus_count(); i++) {
            tt_target_flags(tt_vcpus_at(i), flags_before[i]);
        }
        tt_target_note_regs(tt_vcpu(), regs_before);
    }
}

static void log_flags(CPUState *cpu, const uint64_t before[4])
{
    uint64_t now[4];

    tt_target_flags(cpu, now);
    for (unsigned i = 1; i < 4; i++) {
        TtEvent ev = {
            .kind = TT_EV_CPU_FLAG, .cpu = cpu->cpu_index, .addr = i,
            .val = now[i],
        };

        if (now[i] == before[i] ||
            (i == TT_FLAG_A20 && (tt_omit & TT_OMIT_A20)) ||
            (i == TT_FLAG_IGNNE && (tt_omit & TT_OMIT_IGNNE))) {
            continue;
        }
        tt_log_event(&ev);
    }
}

/* A device may have set a flag of a vCPU (A20, IGNNE, APIC feature). */
static void log_changed_flags(void)
{
    for (unsigned i = 0; i < tt_vcpus_count(); i++) {
        log_flags(tt_vcpus_at(i), flags_before[i]);
    }
}

void tt_device_leave(void)
{
    if (!tt_on()) {
        return;
    }
    if (tt_now.device_depth == 1 && tt_recording()) {
        log_changed_flags();
        tt_target_log_regs(tt_vcpu(), regs_before);
        tt_settle();
    }
    tt_now.device_depth--;
}

static uint64_t mask_of(unsigned size)
{
    return size >= 8 ? UINT64_MAX : (1ull << (8 * size)) - 1;
}

void tt_pio_out(CPUState *cpu, uint32_t port, uint32_t val, unsigned size)
{
    uint8_t le[4];
    TtEvent ev = {
        .kind = TT_EV_PIO_OUT, .addr = port, .size = size,
        .val = val & mask_of(size),
    };

    if (!tt_replaying()) {
        tt_put_le32(le, val);
        tt_device_enter();
        ev.aux = address_space_write(&address_space_io, port,
                                     cpu_get_mem_attrs(cpu_env(cpu)), le, size);
        tt_device_leave();
    }
    sync_event(&ev);
    if (tt_replaying() || port == 0x3f8 || port == 0x3fb) {
        tt_ops->port_written(port, ev.val, size);
    }
}

uint32_t tt_pio_in(CPUState *cpu, uint32_t port, unsigned size)
{
    uint8_t le[4] = { 0 };
    TtEvent ev = { .kind = TT_EV_PIO_IN, .addr = port, .size = size };

    if (!tt_replaying()) {
        tt_device_enter();
        ev.aux = address_space_read(&address_space_io, port,
                                    cpu_get_mem_attrs(cpu_env(cpu)), le, size);
        tt_device_leave();
        ev.val = tt_get_le32(le) & mask_of(size);
    }
    sync_event(&ev);
    return ev.val;
}

uint32_t tt_mmio_ld(CPUState *cpu, MemoryRegion *mr, uint64_t mr_offset,
                    uint64_t gpa, uint64_t *val, unsigned memop,
                    const void *attrs)
{
    TtEvent ev = {
        .kind = TT_EV_MMIO_LD, .addr = gpa, .size = memop_size(memop),
    };

    if (!tt_replaying()) {
        tt_device_enter();
        ev.aux = memory_region_dispatch_read(mr, mr_offset, &ev.val, memop,
                                             *(const MemTxAttrs *)attrs);
        tt_device_leave();
    }
    sync_event(&ev);
    *val = ev.val;
    return ev.aux;
}

uint32_t tt_mmio_st(CPUState *cpu, MemoryRegion *mr, uint64_t mr_offset,
                    uint64_t gpa, uint64_t val, unsigned memop,
                    const void *attrs)
{
    TtEvent ev = {
        .kind = TT_EV_MMIO_ST, .addr = gpa, .size = memop_size(memop),
        .val = val & mask_of(memop_size(memop)),
    };

    if (!tt_replaying()) {
        tt_device_enter();
        ev.aux = memory_region_dispatch_write(mr, mr_offset, val, memop,
                                              *(const MemTxAttrs *)attrs);
        tt_device_leave();
    }
    sync_event(&ev);
    return ev.aux;
}

/* ---- values ---- */

/*
 * The guest's TSC has steps of 32 ticks while it is recorded: an emulated RDTSC
 * takes longer than that, so the low bits are noise of the host, and half of
 * what a boot's log would consist of.
 */
#define TSC_STEP 32

/* The last value read before the recording began was not rounded down. */
static uint64_t tsc_floor;

void tt_inputs_start(void)
{
    tsc_floor = ROUND_UP((uint64_t)cpus_get_elapsed_ticks(), TSC_STEP);
}

uint64_t tt_tsc(void)
{
    TtEvent ev = { .kind = TT_EV_TSC };

    if (!tt_replaying()) {
        ev.val = cpus_get_elapsed_ticks() & ~(uint64_t)(TSC_STEP - 1);
        ev.val = MAX(ev.val, tsc_floor);
    }
    if (tt_token_is_mine()) {       /* else a device or a monitor asks */
        sync_event(&ev);
    }
    return ev.val;
}

uint64_t tt_rand(uint64_t val, unsigned size, bool *carry)
{
    TtEvent ev = {
        .kind = TT_EV_RAND, .size = size, .val = val, .aux = *carry,
    };

    sync_event(&ev);
    *carry = ev.aux;
    return ev.val;
}

void tt_cpuid(uint32_t leaf, uint32_t subleaf, uint32_t regs[4])
{
    uint8_t le[16];
    TtEvent ev = {
        .kind = TT_EV_CPUID, .addr = leaf | (uint64_t)subleaf << 32,
        .data = le, .len = sizeof(le),
    };

    for (int i = 0; i < 4; i++) {
        tt_put_le32(le + 4 * i, regs[i]);
    }
    sync_event(&ev);
    for (int i = 0; i < 4 && ev.len == sizeof(le); i++) {
        regs[i] = tt_get_le32(ev.data + 4 * i);
    }
}

void tt_msr_rd(uint32_t index, uint64_t *val, int *status)
{
    TtEvent ev = {
        .kind = TT_EV_MSR_RD, .addr = index, .val = *val,
        .aux = status ? -*status : 0,
    };

    if (tt_on()) {
        sync_event(&ev);
        *val = ev.val;
        if (status) {
            *status = -(int)ev.aux;
        }
    }
}

void tt_msr_wr(uint32_t index, int *status)
{
    TtEvent ev = { .kind = TT_EV_MSR_WR, .addr = index, .aux = -*status };

    if (tt_on()) {
        sync_event(&ev);
        *status = -(int)ev.aux;
    }
}

uint64_t tt_cr8_rd(uint64_t val)
{
    TtEvent ev = { .kind = TT_EV_CR8_RD, .val = val };

    if (tt_on()) {
        sync_event(&ev);
    }
    return ev.val;
}

void tt_cr8_wr(uint64_t val)
{
    if (tt_ops->cr8_written) {
        tt_ops->cr8_written(val);
    }
}

/* ---- interrupts ---- */

void tt_interrupt_ack(bool begin)
{
    tt_settle();
    tt_now.acknowledging = begin;
}

void tt_interrupt_accepted(CPUState *cpu, int type, int vector)
{
    TtEvent ev = {
        .kind = TT_EV_INTR, .addr = tt_target_intr_class(type), .val = vector,
    };

    if (tt_recording()) {
        tt_log_event(&ev);
    }
}

void tt_interrupt_intercepted(CPUState *cpu, int type)
{
    uint64_t intr_class = tt_target_intr_class(type);
    TtEvent ev = {
        .kind = TT_EV_INTR, .addr = intr_class | TT_INTR_INTERCEPTED,
    };

    if (tt_recording() && tt_target_intercepts(cpu, intr_class)) {
        tt_log_event(&ev);
    }
}

bool tt_replay_unhalt(CPUState *cpu)
{
    return tt_ops->unhalts(cpu);
}

void tt_replay_pending(CPUState *cpu, int type)
{
    if (type == CPU_INTERRUPT_HARD && tt_ops->window_open) {
        tt_ops->window_open(cpu);
    }
}

void tt_record_unhalt(CPUState *cpu)
{
    TtEvent ev = { .kind = TT_EV_UNHALT };

    if (tt_recording() && !(tt_omit & TT_OMIT_UNHALT)) {
        tt_log_event(&ev);
    }
}
