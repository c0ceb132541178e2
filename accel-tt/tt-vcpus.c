/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The vCPUs as one replayed system. One of them runs at a time, in one thread, so
 * the position is one number for all; a cpu-switch event says who runs from
 * there on.
 *
 * Their state together: for one vCPU its own bytes; for more, "TTCS", their
 * number, who runs, and for each its halted flag, length and bytes.
 */
#include "qemu/osdep.h"
#include "accel-tt/tt-vcpus.h"
#include "accel-tt/tt-vcpu-backend.h"
#include "accel-tt/x86/tt-target.h"
#include "qapi/error.h"
#include "hw/core/cpu.h"
#include "qemu/bswap.h"
#include "exec/cputlb.h"
#include "system/cpus.h"
#define XXH_INLINE_ALL
#include <xxhash.h>

#define SET_MAGIC 0x53435454u           /* "TTCS" */
#define SET_HEAD  12
#define SET_ENTRY 8

static CPUState *vcpus[TT_VCPUS_MAX];
static unsigned n_vcpus;
static CPUState *current;
const TtVcpuBackend *tt_backend;

void tt_vcpus_find(void)
{
    CPUState *cpu;

    n_vcpus = 0;
    CPU_FOREACH(cpu) {
        assert(n_vcpus < TT_VCPUS_MAX && cpu->cpu_index == n_vcpus);
        vcpus[n_vcpus++] = cpu;
    }
    current = current ?: vcpus[0];
}

unsigned tt_vcpus_count(void)
{
    return n_vcpus;
}

CPUState *tt_vcpus_at(unsigned index)
{
    return vcpus[index];
}

CPUState *tt_vcpu(void)
{
    return current;
}

void tt_vcpus_turn_to(CPUState *cpu)
{
    current = cpu;
    tt_backend->turn_to(cpu);
}

bool tt_vcpu_has_duties(CPUState *cpu)
{
    return cpu->stop || !cpu_work_list_empty(cpu);
}

uint64_t tt_vcpus_digest(void)
{
    uint64_t h = tt_backend->digest(vcpus[0]);

    if (n_vcpus > 1) {
        h = XXH3_64bits_withSeed(&h, sizeof(h), current->cpu_index);
    }
    for (unsigned i = 1; i < n_vcpus; i++) {
        uint64_t v[2] = { h, tt_backend->digest(vcpus[i]) };

        h = XXH3_64bits(v, sizeof(v));
    }
    return h;
}

void tt_vcpus_flush(void)
{
    for (unsigned i = 0; i < n_vcpus; i++) {
        tt_backend->flush(vcpus[i]);
    }
}

void tt_vcpus_do_work(void)
{
    CPUState *now = current_cpu;

    for (unsigned i = 0; i < n_vcpus; i++) {
        current_cpu = vcpus[i];
        process_queued_cpu_work(vcpus[i]);
    }
    current_cpu = now;
}

void tt_vcpus_stop_for_gdb(void)
{
    cpu_handle_guest_debug(current);
    for (unsigned i = 0; i < n_vcpus; i++) {
        vcpus[i]->stopped = true;
    }
}

/* ---- all of them as bytes ---- */

GByteArray *tt_vcpus_save(void)
{
    GByteArray *out;
    uint8_t head[SET_HEAD];

    if (n_vcpus == 1) {
        return tt_backend->save(vcpus[0]);
    }
    out = g_byte_array_new();
    stl_le_p(head, SET_MAGIC);
    stl_le_p(head + 4, n_vcpus);
    stl_le_p(head + 8, current->cpu_index);
    g_byte_array_append(out, head, sizeof(head));
    for (unsigned i = 0; i < n_vcpus; i++) {
        GByteArray *one = tt_backend->save(vcpus[i]);

        stl_le_p(head, one->len);
        stl_le_p(head + 4, vcpus[i]->halted);
        g_byte_array_append(out, head, SET_ENTRY);
        g_byte_array_append(out, one->data, one->len);
        g_byte_array_unref(one);
    }
    return out;
}

static bool load_set(const uint8_t *data, size_t len, Error **errp)
{
    size_t at = SET_HEAD;
    uint32_t runs;

    if (len < SET_HEAD || ldl_le_p(data) != SET_MAGIC ||
        ldl_le_p(data + 4) != n_vcpus ||
        (runs = ldl_le_p(data + 8)) >= n_vcpus) {
        error_setg(errp, "the state of the run's vCPUs does not fit this machine: the "
                   "run is damaged");
        return false;
    }
    for (unsigned i = 0; i < n_vcpus; i++) {
        uint32_t size;

        if (len - at < SET_ENTRY ||
            (size = ldl_le_p(data + at)) > len - at - SET_ENTRY) {
            error_setg(errp, "the state of the run's vCPUs is cut short: the run is "
                       "damaged");
            return false;
        }
        if (!tt_backend->load(vcpus[i], data + at + SET_ENTRY, size, errp)) {
            return false;
        }
        vcpus[i]->halted = !!ldl_le_p(data + at + 4);
        at += SET_ENTRY + size;
    }
    tt_vcpus_turn_to(vcpus[runs]);
    return true;
}

bool tt_vcpus_load(const uint8_t *data, size_t len, bool halted, Error **errp)
{
    if (n_vcpus > 1) {
        return load_set(data, len, errp);
    }
    if (!tt_backend->load(vcpus[0], data, len, errp)) {
        return false;
    }
    vcpus[0]->halted = halted;
    return true;
}

/* ---- the present and the past ---- */

static TtLinks other_links[TT_VCPUS_MAX];

void tt_vcpus_forget_links(void)
{
    memset(other_links, 0, sizeof(other_links));
}

void tt_vcpus_swap_links(void)
{
    for (unsigned i = 0; i < n_vcpus; i++) {
        tt_target_swap_links(vcpus[i], &other_links[i]);
    }
}
