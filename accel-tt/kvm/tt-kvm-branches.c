/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Branches that the vCPU executed since it was at an exact place last, from the CPU's
 * performance counters (perf events with exclude_host). With registers they say where it
 * stands when it was made to leave guest code; so a replay need not look for the place.
 *
 * Conditional branches are counted: others are counted by some CPUs together with
 * interrupts and exceptions. Whether this host counts them exactly, with KVM's exits
 * and with instructions under LOCK (AMD's Zen counts too many, with its default
 * settings), a small guest finds out, which is a VM of its own and knows what it did.
 *
 * KVM emulates no conditional branch, and an exit is never in one. Each entry from an exact
 * place costs a read of the counter.
 */
#include "qemu/osdep.h"
#include "tt-kvm-parts-int.h"
#include "tt/hooks.h"
#include "cpu.h"
#include "system/kvm.h"
#include "system/kvm_int.h"
#include <linux/kvm.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

/* Retired conditional branches. Intel's newer CPUs have the first one; with the second
 * they count those that were taken. */
static const uint64_t events_intel[] = { 0x11c4, 0x01c4 };
static const uint64_t events_amd[] = { 0x00d1 };

static struct {
    int fd;                     /* -1: not counted */
    uint64_t event;
    uint64_t at_place;          /* the count at the last exact place */
    const char *why;            /* it is not counted */
} br = { .fd = -1 };

static int open_event(int thread)
{
    struct perf_event_attr attr = {
        .type = PERF_TYPE_RAW, .config = br.event, .size = sizeof(attr),
        .exclude_host = 1, .pinned = 1,
    };

    return syscall(SYS_perf_event_open, &attr, thread, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

/* False: it was not on the CPU all the time. */
static bool read_event(int fd, uint64_t *n)
{
    return read(fd, n, sizeof(*n)) == sizeof(*n);
}

/* ---- is it exact? ---- */

#define TRY_CODE        0x1000
#define TRY_BYTES       0x2000
#define TRY_ROUNDS      300000
#define TRY_EACH        3               /* branches a round */
#define TRY_MS          2000

extern const char tt_kvm_try_begin[], tt_kvm_try_end[];

/* Real mode: nothing but registers has to be set up. */
asm(".pushsection .rodata\n"
    ".code16\n"
    "tt_kvm_try_begin:\n"
    "1: call 4f\n"
    "   lock incw 0x500\n"
    "   test $1, %cl\n"
    "   jz 2f\n"
    "   lock incw 0x500\n"
    "2: decl %ecx\n"
    "   jnz 1b\n"
    "3: hlt\n"
    "   jmp 3b\n"
    "4: jcxz 5f\n"
    "5: ret\n"
    "tt_kvm_try_end:\n"
#ifdef __x86_64__
    ".code64\n"
#else
    ".code32\n"
#endif
    ".popsection\n");

typedef struct Try {
    int vm, vcpu;
    void *ram;
    struct kvm_run *run;
    size_t run_bytes;
} Try;

static bool try_make(Try *t)
{
    struct kvm_userspace_memory_region slot = { .memory_size = TRY_BYTES };
    struct kvm_regs r = { .rip = TRY_CODE, .rflags = 2, .rsp = 0xf00, .rcx = TRY_ROUNDS };
    struct kvm_sregs s;

    t->ram = mmap(NULL, TRY_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                  -1, 0);
    t->vm = ioctl(kvm_state->fd, KVM_CREATE_VM, 0);
    t->run_bytes = MAX(ioctl(kvm_state->fd, KVM_GET_VCPU_MMAP_SIZE, 0), 0);
    if (t->ram == MAP_FAILED || t->vm < 0) {
        return false;
    }
    memcpy((char *)t->ram + TRY_CODE, tt_kvm_try_begin,
           tt_kvm_try_end - tt_kvm_try_begin);
    slot.userspace_addr = (uintptr_t)t->ram;
    /* Intel's need them where the CPU cannot run real mode itself. */
    ioctl(t->vm, KVM_SET_TSS_ADDR, 0xfffbd000);
    if (ioctl(t->vm, KVM_SET_USER_MEMORY_REGION, &slot) ||
        (t->vcpu = ioctl(t->vm, KVM_CREATE_VCPU, 0)) < 0 ||
        (t->run = mmap(NULL, t->run_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, t->vcpu,
                       0)) == MAP_FAILED || ioctl(t->vcpu, KVM_GET_SREGS, &s)) {
        return false;
    }
    s.cs.base = s.cs.selector = 0;
    return !ioctl(t->vcpu, KVM_SET_SREGS, &s) && !ioctl(t->vcpu, KVM_SET_REGS, &r);
}

static bool try_run(const Try *t)
{
    int64_t end = g_get_monotonic_time() + TRY_MS * 1000;

    while (ioctl(t->vcpu, KVM_RUN, 0)) {
        if ((errno != EINTR && errno != EAGAIN) || g_get_monotonic_time() > end) {
            return false;
        }
    }
    return t->run->exit_reason == KVM_EXIT_HLT;
}

static void try_end(const Try *t)
{
    if (t->run && t->run != MAP_FAILED) {
        munmap(t->run, t->run_bytes);
    }
    if (t->vcpu >= 0) {
        close(t->vcpu);
    }
    if (t->vm >= 0) {
        close(t->vm);
    }
    if (t->ram != MAP_FAILED) {
        munmap(t->ram, TRY_BYTES);
    }
}

/* NULL: it is. */
static const char *inexact(void)
{
    Try t = { .vm = -1, .vcpu = -1 };
    const char *why = "a small guest could not be run";
    int fd = open_event(0);
    uint64_t n;

    if (fd < 0) {
        return errno == EACCES || errno == EPERM ?
            "perf_event_paranoid of this host forbids it" :
            "this host has no perf events that count guests";
    }
    if (try_make(&t) && try_run(&t)) {
        why = !read_event(fd, &n) ? "all counters are in use" :
            n != TRY_EACH * TRY_ROUNDS ? "this host does not count them exactly" : NULL;
    }
    try_end(&t);
    close(fd);
    return why;
}

/* Of the events that this CPU may have, the first that is. */
static const char *find_exact(void)
{
    const char *why = NULL;
    uint32_t a, b, c, d;
    bool is_intel;

    host_cpuid(0, 0, &a, &b, &c, &d);
    is_intel = b == CPUID_VENDOR_INTEL_1;
    for (unsigned i = 0; i < (is_intel ? ARRAY_SIZE(events_intel) :
                              ARRAY_SIZE(events_amd)); i++) {
        br.event = is_intel ? events_intel[i] : events_amd[i];
        why = inexact();
        if (!why) {
            break;
        }
    }
    return why;
}

/* ---- recording ---- */

void tt_kvm_branches_begin(CPUState *cpu)
{
    static bool was_tried;

    if (tt_omit & TT_OMIT_BRANCH_COUNTS) {
        br.why = "x-omit says so";
        return;
    }
    if (!was_tried) {
        br.why = find_exact();
        was_tried = true;
    }
    if (!br.why) {
        br.fd = open_event(cpu->thread_id);
        tt_kvm_branches_mark();
    }
}

void tt_kvm_branches_end(void)
{
    if (br.fd >= 0) {
        close(br.fd);
        br.fd = -1;
    }
}

const char *tt_kvm_branches_missing(void)
{
    return br.fd >= 0 ? NULL : br.why ?: "all counters are in use";
}

void tt_kvm_branches_mark(void)
{
    if (br.fd >= 0 && !read_event(br.fd, &br.at_place)) {
        tt_kvm_branches_end();          /* landmarks are without, from here on */
    }
}

bool tt_kvm_branches_passed(uint64_t *n)
{
    uint64_t now;

    if (br.fd < 0 || !read_event(br.fd, &now)) {
        return false;
    }
    *n = now - br.at_place;
    return true;
}
