/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Counts the branches of a small KVM guest with perf events. The guest's loop has two
 * conditional branches and two others in each round; it is left by a timer, too. Prints,
 * for each event, what was counted and what must be. Status 1: some count is wrong.
 *
 * Linked statically: it runs in the emulated host (test_kvm_branches.py).
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/kvm.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#define CODE        0x1000
#define RAM_BYTES   0x10000
#define COND        0xd1            /* retired conditional branches, AMD */

extern const char guest_begin[], guest_end[];

asm(".section .rodata\n"
    ".code16\n"
    "guest_begin:\n"
    "1: call 3f\n"
    "   lock incw 0x500\n"
    "   decl %ecx\n"
    "   jnz 1b\n"
    "2: hlt\n"
    "   jmp 2b\n"
    "3: jcxz 4f\n"
    "4: ret\n"
    "guest_end:\n"
    ".code64\n"
    ".text\n");

static int vm, vcpu;
static struct kvm_run *run;
static unsigned n_kicks;
static int status;

static void fail(const char *what)
{
    perror(what);
    exit(2);
}

static void kick(int sig)
{
    (void)sig;
}

static void make_guest(void)
{
    struct kvm_userspace_memory_region ram = { .memory_size = RAM_BYTES };
    struct kvm_sregs s;
    int kvm = open("/dev/kvm", O_RDWR);
    void *bytes = mmap(NULL, RAM_BYTES, PROT_READ | PROT_WRITE,
                       MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    vm = ioctl(kvm, KVM_CREATE_VM, 0);
    memcpy((char *)bytes + CODE, guest_begin, guest_end - guest_begin);
    ram.userspace_addr = (uintptr_t)bytes;
    if (vm < 0 || ioctl(vm, KVM_SET_USER_MEMORY_REGION, &ram)) {
        fail("KVM");
    }
    vcpu = ioctl(vm, KVM_CREATE_VCPU, 0);
    run = mmap(NULL, ioctl(kvm, KVM_GET_VCPU_MMAP_SIZE, 0), PROT_READ | PROT_WRITE,
               MAP_SHARED, vcpu, 0);
    if (ioctl(vcpu, KVM_GET_SREGS, &s)) {
        fail("KVM_GET_SREGS");
    }
    s.cs.base = s.cs.selector = 0;
    if (ioctl(vcpu, KVM_SET_SREGS, &s)) {
        fail("KVM_SET_SREGS");
    }
}

static void run_guest(uint64_t rounds)
{
    struct kvm_regs r = { .rip = CODE, .rflags = 2, .rsp = 0x8000, .rcx = rounds };

    if (ioctl(vcpu, KVM_SET_REGS, &r)) {
        fail("KVM_SET_REGS");
    }
    while (ioctl(vcpu, KVM_RUN, 0) || run->exit_reason != KVM_EXIT_HLT) {
        if (errno != EINTR) {
            fail("KVM_RUN");
        }
        n_kicks++;
    }
}

static uint64_t count(int fd)
{
    uint64_t n;

    if (read(fd, &n, sizeof(n)) != sizeof(n)) {
        fail("read of a perf event");
    }
    return n;
}

/* What @attr counts while the guest runs so many rounds: @each a round. */
static void measure(const char *name, struct perf_event_attr attr, uint64_t each)
{
    static const uint64_t rounds[] = { 1, 2, 1000, 65535, 65536, 10000000 };
    int fd;

    attr.size = sizeof(attr);
    attr.pinned = 1;
    fd = syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);
    if (fd < 0) {
        fail("perf_event_open");
    }
    for (unsigned i = 0; i < sizeof(rounds) / sizeof(rounds[0]); i++) {
        uint64_t before = count(fd), n;

        run_guest(rounds[i]);
        n = count(fd) - before;
        printf("%s rounds=%llu counted=%llu expected=%llu\n", name,
               (unsigned long long)rounds[i], (unsigned long long)n,
               (unsigned long long)(rounds[i] * each));
        status |= n != rounds[i] * each;
    }
    close(fd);
}

int main(void)
{
    struct perf_event_attr all = {
        .type = PERF_TYPE_HARDWARE, .config = PERF_COUNT_HW_BRANCH_INSTRUCTIONS,
        .exclude_host = 1,
    };
    struct perf_event_attr cond = {
        .type = PERF_TYPE_RAW, .config = COND, .exclude_host = 1,
    };
    struct perf_event_attr user = all, host = all;
    struct sigaction sa = { .sa_handler = kick };
    struct itimerval each_ms = { { 0, 1000 }, { 0, 1000 } };
    int fd;

    user.exclude_kernel = 1;        /* the guest is in ring 0 */
    sigaction(SIGALRM, &sa, NULL);
    make_guest();
    setitimer(ITIMER_REAL, &each_ms, NULL);
    measure("branches", all, 4);
    measure("conditional", cond, 2);
    measure("user", user, 0);
    host.exclude_host = 0;
    host.exclude_guest = 1;
    host.size = sizeof(host);
    fd = syscall(SYS_perf_event_open, &host, 0, -1, -1, 0);
    run_guest(10000000);
    printf("host counted=%llu kicks=%u\n", (unsigned long long)count(fd), n_kicks);
    status |= count(fd) < 1000 || count(fd) > 10000000 || !n_kicks;
    return status;
}
