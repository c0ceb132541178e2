/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The time stamp counter of a guest under KVM. RDTSC never leaves guest code, and Linux
 * reads the counter although CPUID hides it (for random numbers). Where the host can
 * scale it, it is slowed down until it stands still, and its value is an input: it
 * changes at exact places only, and is logged there.
 *
 * KVM computes (host's counter * ratio >> fraction bits) + offset. At 2 kHz it ticks
 * twice a millisecond; before each entry the offset is set so that the value is the
 * logged one. A timer makes the vCPU leave shortly before the next tick; it is let pass,
 * and the offset set anew. (At 1 kHz Linux 6.1 rounds its own idea of the frequency to 0
 * and hangs.) Where the counter does not stand still, the same timer ends a slice of guest
 * code that somebody waits for.
 *
 * While nothing is recorded it runs as QEMU counts (cpus_get_elapsed_ticks), which is
 * where the logged values come from: so it does not go back when a recording of a running
 * VM begins or ends. QEMU's count stops before the vCPU's thread does; what the guest
 * counted until then is added from there on (`ahead`).
 */
#include "qemu/osdep.h"
#include "accel-tt/tt-token.h"
#include "accel-tt/tt-vcpu-backend.h"
#include "io/tt-base.h"
#include "log/tt-log.h"
#include "session/tt-ops.h"
#include "tt/hooks.h"
#include "tt-kvm-parts-int.h"
#include "cpu.h"
#include "qemu/error-report.h"
#include "qemu/thread.h"
#include "qemu/timer.h"
#include "system/cpu-timers.h"
#include "system/kvm.h"
#include "system/kvm_int.h"
#include "system/runstate.h"
#include "system/cpus.h"
#include <linux/kvm.h>
#include <time.h>

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

#define SLOW_KHZ 2
#define SLICE_NS 1000000            /* of guest code that is waited for */
#define NEW_VALUE_TICKS 1000000     /* of the logged counter: some 1 ms */

static struct {
    bool on;
    uint64_t ratio;
    unsigned fraction_bits;
    uint64_t value;             /* what the guest reads */
    uint64_t set_at;            /* the scaled counter when the offset was set */
    unsigned khz;               /* of the host's */
    uint64_t ahead;             /* of QEMU's count */
    timer_t timer;
    bool has_timer;
} tsc;

static unsigned __int128 product(void)
{
    return (unsigned __int128)cpu_get_host_ticks() * tsc.ratio;
}

static uint64_t scaled(void)
{
    return product() >> tsc.fraction_bits;
}

static bool set_offset(CPUState *cpu, uint64_t offset)
{
    struct kvm_device_attr attr = {
        .group = KVM_VCPU_TSC_CTRL, .attr = KVM_VCPU_TSC_OFFSET,
        .addr = (uintptr_t)&offset,
    };

    return !kvm_vcpu_ioctl(cpu, KVM_SET_DEVICE_ATTR, &attr);
}

/* Linux 5.16 has it. */
static bool has_offset(CPUState *cpu)
{
    struct kvm_device_attr attr = {
        .group = KVM_VCPU_TSC_CTRL, .attr = KVM_VCPU_TSC_OFFSET,
    };

    return !kvm_vcpu_ioctl(cpu, KVM_HAS_DEVICE_ATTR, &attr);
}

static uint64_t count(void)
{
    return cpus_get_elapsed_ticks() + tsc.ahead;
}

/* What the guest would read now. */
static bool get_value(CPUState *cpu, uint64_t *value)
{
    struct {
        struct kvm_msrs head;
        struct kvm_msr_entry entry;
    } msrs = { .head.nmsrs = 1, .entry.index = MSR_IA32_TSC };
    bool ok = kvm_vcpu_ioctl(cpu, KVM_GET_MSRS, &msrs) == 1;

    *value = msrs.entry.data;
    return ok;
}

/* It kicks the vCPU's thread. */
static bool make_timer(CPUState *cpu)
{
    struct sigevent ev = {
        .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIG_IPI,
    };

    ev.sigev_notify_thread_id = cpu->thread_id;
    return !timer_create(CLOCK_MONOTONIC, &ev, &tsc.timer);
}

static void log_value(uint64_t value)
{
    TtEvent ev = { .kind = TT_EV_CPU_FLAG, .addr = TT_FLAG_TSC, .val = value };

    tt_log_event(&ev);
    tsc.value = value;
    tsc.set_at = UINT64_MAX;
}

void tt_kvm_tsc_log(void)
{
    if (tsc.on) {
        log_value(tsc.value);
    }
}

void tt_kvm_tsc_begin(CPUState *cpu)
{
    int khz = kvm_vcpu_ioctl(cpu, KVM_GET_TSC_KHZ);

    tsc.has_timer = make_timer(cpu);
    tsc.fraction_bits = IS_INTEL_CPU(cpu_env(cpu)) ? 48 : 32;
    if (kvm_check_extension(kvm_state, KVM_CAP_TSC_CONTROL) <= 0 || khz <= SLOW_KHZ) {
        return;
    }
    tsc.ratio = ((unsigned __int128)1 << tsc.fraction_bits) * SLOW_KHZ / khz;
    if (((unsigned __int128)khz * tsc.ratio >> tsc.fraction_bits) < 1 ||
        kvm_vcpu_ioctl(cpu, KVM_SET_TSC_KHZ, SLOW_KHZ)) {
        return;
    }
    tsc.khz = khz;
    tsc.on = set_offset(cpu, 0) && tsc.has_timer;
    if (!tsc.on) {
        kvm_vcpu_ioctl(cpu, KVM_SET_TSC_KHZ, khz);
        return;
    }
    log_value(count());
}

void tt_kvm_tsc_forget(void)
{
    tsc.set_at = UINT64_MAX;
}

void tt_kvm_tsc_end(CPUState *cpu)
{
    if (tsc.has_timer) {
        tsc.has_timer = false;
        timer_delete(tsc.timer);
    }
    if (tsc.on) {
        tsc.on = false;
        if (kvm_vcpu_ioctl(cpu, KVM_SET_TSC_KHZ, tsc.khz)) {
            error_report("tt: KVM does not restore the frequency of the guest's time "
                         "stamp counter, which stands still: restart the VM");
        }
    }
}

/* The vCPUs are about to run, and QEMU's count runs already. It is read first, so that
 * the guest's is never ahead of it. */
static void starts(CPUState *cpu)
{
    uint64_t value = count();

    if (!set_offset(cpu, value - cpu_get_host_ticks())) {
        error_report("tt: KVM refuses to set the guest's time stamp counter: it may go "
                     "back, so restart the VM");
    }
}

/* QEMU's count has stopped, and then the vCPUs have. */
static void stops(CPUState *cpu)
{
    uint64_t seen, counted = count();

    if (get_value(cpu, &seen) && (int64_t)(seen - counted) > 0) {
        tsc.ahead += seen - counted;
    }
}

static void vm_state_changed(void *opaque, bool running, RunState state)
{
    if (kvm_check_extension(kvm_state, KVM_CAP_TSC_CONTROL) <= 0 ||
        !has_offset(first_cpu)) {
        return;                         /* nobody here ever sets it */
    }
    if (!running) {
        stops(first_cpu);
    } else if (!tt_on()) {
        starts(first_cpu);
    }
}

void tt_kvm_tsc_init(void)
{
    qemu_add_vm_change_state_handler(vm_state_changed, NULL);
}

bool tt_kvm_tsc_is_frozen(void)
{
    return tsc.on;
}

uint64_t tt_kvm_tsc_read(CPUState *cpu)
{
    uint64_t value;

    return tsc.on ? tsc.value : get_value(cpu, &value) ? value : count();
}

static uint64_t period(void)
{
    return UINT64_C(1) << tsc.fraction_bits;
}

/* How much of it has passed. */
static uint64_t phase(void)
{
    return (uint64_t)product() & (period() - 1);
}

/* The vCPU is out of guest code from here on, in each period. */
static uint64_t leave_at(void)
{
    return period() / 8 * 7;
}

static void wait_for_tick(void)
{
    while (phase() >= leave_at()) {
        cpu_relax();
    }
}

/* False: it would fire too late, because this thread was held up here. */
static bool arm_timer(void)
{
    unsigned __int128 start = product();
    uint64_t at = start & (period() - 1);
    struct itimerspec when = { 0 };

    if (at >= leave_at()) {
        return false;
    }
    when.it_value.tv_nsec = MAX((leave_at() - at) / tsc.ratio * 1000000 / tsc.khz, 1);
    timer_settime(tsc.timer, 0, &when, NULL);
    return product() - start < period() / 32;
}

static void log_new_value(CPUState *cpu, bool is_behind)
{
    uint64_t value = count();

    if (value - tsc.value >= NEW_VALUE_TICKS &&
        tt_kvm_boundary(cpu, is_behind) == TT_KVM_BETWEEN) {
        log_value(value);
    }
}

/* Who queued while the vCPU had given the token away waits for the lock only, and kicks
 * nobody. Nor does an interrupt that has no window. */
static void bound_slice(bool is_within)
{
    const struct itimerspec when = { .it_value.tv_nsec = SLICE_NS };

    if (tsc.has_timer && (is_within || tt_token_is_wanted())) {
        timer_settime(tsc.timer, 0, &when, NULL);
    }
}

bool tt_kvm_tsc_enter(CPUState *cpu, bool is_exact, bool is_behind, bool is_within)
{
    if (!tsc.on) {
        bound_slice(is_within);
        return true;
    }
    if (is_exact) {
        log_new_value(cpu, is_behind);
    }
    do {
        uint64_t now;

        wait_for_tick();
        now = scaled();
        if (now != tsc.set_at) {
            if (!set_offset(cpu, tsc.value - now)) {
                error_report("tt: KVM refuses to set the guest's time stamp counter: %s",
                             strerror(errno));
                return false;
            }
            tsc.set_at = now;
        }
    } while (!arm_timer() || scaled() != tsc.set_at);
    return true;
}
