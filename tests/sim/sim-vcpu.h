/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A simulated vCPU behind accel-tt/tt-vcpu-backend.h: a few registers, one page of
 * RAM and a random program that does I/O, is interrupted, halts, and reads through
 * a cache that does not see what a device writes. It shows that recording and
 * replaying need nothing of an accelerator but that interface.
 *
 * Context: one thread at a time. Nothing fails but load.
 */
#ifndef TT_SIM_VCPU_H
#define TT_SIM_VCPU_H

#include "accel-tt/tt-vcpu-backend.h"

#define SIM_RAM_BYTES   4096u

/* What run answers, as QEMU's EXCP_* do. */
enum { SIM_EXCP_STOP = 0x10000, SIM_EXCP_HALTED = 0x10001 };

/* What load says is wrong. */
struct Error {
    const char *text;
};

/* The world outside: called inside of an instruction. */
typedef struct SimWorld {
    uint64_t (*in)(void *opaque, uint16_t port);
    void (*out)(void *opaque, uint16_t port, uint64_t value);
    uint64_t (*clock)(void *opaque);
    void *opaque;
} SimWorld;

extern const TtVcpuBackend sim_vcpu_backend;

/* A vCPU with the program of @seed, at its first instruction. @world is copied. */
struct CPUState *sim_vcpu_new(uint32_t seed, const SimWorld *world);
void sim_vcpu_free(struct CPUState *cpu);
/* SIM_RAM_BYTES, which a device may write outside guest code. */
uint8_t *sim_vcpu_ram(struct CPUState *cpu);
/* Would it take a TT_INTR_HARD here? */
bool sim_vcpu_takes_interrupts(const struct CPUState *cpu);
/* The flag that save leaves out. */
bool sim_vcpu_halted(const struct CPUState *cpu);
void sim_vcpu_set_halted(struct CPUState *cpu, bool halted);

#endif
