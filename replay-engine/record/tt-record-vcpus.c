/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Changes of the vCPUs by others while a recording has given the token away, or inside
 * of a device call: a reset, a monitor command, gdb. Owns the state that they had when
 * the token was given away.
 */
#include "qemu/osdep.h"
#include "record/tt-record-vcpus.h"
#include "accel-tt/tt-token.h"
#include "accel-tt/tt-vcpus.h"
#include "accel-tt/x86/tt-target.h"
#include "log/tt-log.h"
#include "record/tt-record.h"
#include "tt/hooks.h"
#include "hw/core/cpu.h"

static bool released;               /* the token was given away since */
static uint64_t prints[TT_VCPUS_MAX];       /* fingerprints when it was */
static bool was_reset[TT_VCPUS_MAX];

void tt_record_release(void)
{
    if (!released) {
        for (unsigned i = 0; i < tt_vcpus_count(); i++) {
            prints[i] = tt_backend->fingerprint(tt_vcpus_at(i));
        }
        released = true;
    }
}

static void log_state(CPUState *cpu)
{
    GByteArray *state = tt_backend->save(cpu);
    TtEvent ev = {
        .kind = TT_EV_CPU_STATE, .cpu = cpu->cpu_index, .val = cpu->halted,
        .data = state->data, .len = state->len,
    };

    tt_record_event(&ev);
    g_byte_array_unref(state);
}

static void log_states(void)
{
    for (unsigned i = 0; i < tt_vcpus_count(); i++) {
        log_state(tt_vcpus_at(i));
    }
}

void tt_record_took_note(void)
{
    released = false;
    memset(was_reset, 0, sizeof(was_reset));
    tt_record_release();
}

void tt_record_renew(void)
{
    tt_vcpus_flush();
    log_states();
    tt_record_took_note();
}

/* One vCPU was changed by others, or reset itself: its state is an input. */
static void resync_one(unsigned i)
{
    CPUState *cpu = tt_vcpus_at(i);
    bool changed = was_reset[i];

    if (released) {
        changed |= tt_backend->fingerprint(cpu) != prints[i];
    }
    was_reset[i] = false;
    if (changed && !(tt_omit & TT_OMIT_CPU_RESET)) {
        log_state(cpu);
        tt_backend->flush(cpu);     /* as the load in the replay does */
    }
}

void tt_record_vcpus_resync(void)
{
    for (unsigned i = 0; i < tt_vcpus_count(); i++) {
        resync_one(i);
    }
    released = false;
}

void tt_record_vcpus_was_reset(CPUState *cpu)
{
    if ((unsigned)cpu->cpu_index < TT_VCPUS_MAX) {
        was_reset[cpu->cpu_index] = true;
    }
    if (tt_token_is_mine() && cpu->running) {
        cpu_exit(cpu);          /* INIT or SIPI, taken inside cpu_exec */
    }
}

void tt_record_vcpus_begin(void)
{
    log_states();
    memset(was_reset, 0, sizeof(was_reset));
}

void tt_record_vcpus_forget(void)
{
    released = false;
    memset(was_reset, 0, sizeof(was_reset));
}
