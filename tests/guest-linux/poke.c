/*
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * What the shell of the Linux test guest cannot do to a device, for the works of
 * tests/guest-linux/devices. Each command prints one line and succeeds, or says
 * what failed.
 *
 *   poke pci                      the registers of all PCI devices that no driver has
 *   poke io OPS                   ports
 *   poke mem OPS                  physical addresses
 *   poke bar VVVV:DDDD:BAR OPS    registers of a PCI device
 *   poke can FROM TO              one CAN frame through two controllers
 *   poke listen NIC               waits for a CAN frame
 *   poke ipmi NUMBER              the identity of a management controller
 *   poke aes DRIVER               encrypts with a driver of the kernel's crypto API
 *
 * OPS are joined by '+', all numbers are hexadecimal: rSIZE.ADDRESS, and
 * wSIZE.ADDRESS.VALUE, SIZE being 1, 2, 4 or 8; sMILLISECONDS waits.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/io.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>
#include <linux/can.h>
#include <linux/can/netlink.h>
#include <linux/if.h>
#include <linux/if_alg.h>
#include <linux/ipmi.h>
#include <linux/rtnetlink.h>

#define DEVICES "/sys/bus/pci/devices"
#define PAGE 4096

static void fail(const char *what)
{
    printf("TT-FAIL poke: %s: %s\n", what, strerror(errno));
    exit(1);
}

static void need(long result, const char *what)
{
    if (result < 0) {
        fail(what);
    }
}

/* ---- registers ---- */

/* Where registers are: in memory, or ports, which start at @port. */
typedef struct {
    volatile uint8_t *mem;
    unsigned port;
} Regs;

static uint64_t get(Regs r, unsigned size, uint64_t at)
{
    unsigned port = r.port + at;

    switch (size) {
    case 1:
        return r.mem ? r.mem[at] : inb(port);
    case 2:
        return r.mem ? *(volatile uint16_t *)(r.mem + at) : inw(port);
    case 4:
        return r.mem ? *(volatile uint32_t *)(r.mem + at) : inl(port);
    default:
        return *(volatile uint64_t *)(r.mem + at);
    }
}

static void set(Regs r, unsigned size, uint64_t at, uint64_t value)
{
    unsigned port = r.port + at;

    if (size == 8) {
        *(volatile uint64_t *)(r.mem + at) = value;
    } else if (size == 4 && r.mem) {
        *(volatile uint32_t *)(r.mem + at) = value;
    } else if (size == 2 && r.mem) {
        *(volatile uint16_t *)(r.mem + at) = value;
    } else if (r.mem) {
        r.mem[at] = value;
    } else if (size == 4) {
        outl(value, port);
    } else if (size == 2) {
        outw(value, port);
    } else {
        outb(value, port);
    }
}

static volatile uint8_t *map(const char *path, uint64_t start, size_t size)
{
    int fd = open(path, O_RDWR | O_SYNC);
    void *p;

    need(fd, path);
    p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, start);
    if (p == MAP_FAILED) {
        fail(path);
    }
    close(fd);
    return p;
}

/* @regs: NULL for physical memory, which is mapped as it is asked for. */
static void operate(const Regs *regs, char *ops)
{
    for (char *op = strtok(ops, "+"); op; op = strtok(NULL, "+")) {
        char *next = op + 1;
        unsigned size = strtoul(next, &next, 16);
        uint64_t at = *next ? strtoull(next + 1, &next, 16) : 0;
        Regs r = { 0 };

        if (*op == 's') {
            usleep(size * 1000);
            continue;
        }
        if (regs) {
            r = *regs;
        } else {
            r.mem = map("/dev/mem", at & ~(uint64_t)(PAGE - 1), PAGE);
            at &= PAGE - 1;
        }
        if (*op == 'w') {
            set(r, size, at, strtoull(next + 1, NULL, 16));
        } else {
            printf(" %jx", (uintmax_t)get(r, size, at));
        }
    }
    printf("\n");
}

/* ---- PCI ---- */

/* The number in a file of a device, or 0. */
static uint64_t number_of(const char *device, const char *file)
{
    char path[320], text[32] = "";
    FILE *f;

    snprintf(path, sizeof(path), DEVICES "/%s/%s", device, file);
    f = fopen(path, "r");
    if (f) {
        if (!fgets(text, sizeof(text), f)) {
            text[0] = 0;
        }
        fclose(f);
    }
    return strtoull(text, NULL, 16);
}

/* Lets a device be read, and lets it read and write memory. */
static void enable(const char *device)
{
    char path[320];
    uint16_t command = 0;
    int fd;

    snprintf(path, sizeof(path), DEVICES "/%s/config", device);
    fd = open(path, O_RDWR);
    need(fd, path);
    need(pread(fd, &command, 2, 4), "PCI command");
    command |= 7;
    need(pwrite(fd, &command, 2, 4), "PCI command");
    close(fd);
}

/* The first 64 KiB of a BAR, at most; false if it is not there. */
static int open_bar(const char *device, int bar, Regs *regs, uint64_t *size)
{
    char path[320];
    uint64_t start = 0, end = 0, flags = 0;
    FILE *f;

    snprintf(path, sizeof(path), DEVICES "/%s/resource", device);
    f = fopen(path, "r");
    for (int i = 0; f && i <= bar; i++) {
        if (fscanf(f, "%lx %lx %lx", &start, &end, &flags) != 3) {
            start = 0;
        }
    }
    if (f) {
        fclose(f);
    }
    if (!start) {
        return 0;
    }
    *size = end - start + 1;
    if (flags & 0x100) {
        *regs = (Regs){ .port = start };
        return 1;
    }
    *size = *size < 65536 ? *size : 65536;
    snprintf(path, sizeof(path), DEVICES "/%s/resource%d", device, bar);
    regs->port = 0;
    regs->mem = map(path, 0, *size < PAGE ? PAGE : *size) + start % PAGE;
    return 1;
}

static uint64_t mix(uint64_t sum, uint64_t value)
{
    return (sum ^ value) * 0x100000001b3;
}

static void read_device(const char *device)
{
    uint8_t config[4096];
    uint64_t sum = 0, size;
    char path[320];
    ssize_t got;
    Regs regs;
    int fd;

    printf("TT-POKE %s %04jx:%04jx", device,
           (uintmax_t)number_of(device, "vendor"),
           (uintmax_t)number_of(device, "device"));
    snprintf(path, sizeof(path), DEVICES "/%s/config", device);
    fd = open(path, O_RDONLY);
    need(fd, path);
    got = read(fd, config, sizeof(config));
    close(fd);
    for (ssize_t i = 0; i < got; i++) {
        sum = mix(sum, config[i]);
    }
    printf(" config %zd %jx", got, (uintmax_t)sum);
    snprintf(path, sizeof(path), DEVICES "/%s/driver", device);
    if (!access(path, F_OK)) {
        printf(" has a driver\n");
        return;
    }
    enable(device);
    for (int bar = 0; bar < 6; bar++) {
        if (open_bar(device, bar, &regs, &size)) {
            unsigned step = size < 4 ? 1 : 4;

            sum = 0;
            for (uint64_t at = 0; at < size && at < 2 * PAGE; at += step) {
                sum = mix(sum, get(regs, step, at));
            }
            printf(" bar%d %jx %jx", bar, (uintmax_t)size, (uintmax_t)sum);
        }
    }
    printf("\n");
}

/* Calls @visit for each device, in the order of their addresses. */
static void each_device(void (*visit)(const char *device, void *opaque),
                        void *opaque)
{
    struct dirent **names;
    int n = scandir(DEVICES, &names, NULL, alphasort);

    need(n, DEVICES);
    for (int i = 0; i < n; i++) {
        if (names[i]->d_name[0] != '.') {
            visit(names[i]->d_name, opaque);
        }
    }
}

static void visit_read(const char *device, void *opaque)
{
    read_device(device);
}

typedef struct {
    unsigned vendor, device;
    char name[256];
} Wanted;

static void visit_find(const char *device, void *opaque)
{
    Wanted *w = opaque;

    if (number_of(device, "vendor") == w->vendor &&
        number_of(device, "device") == w->device && !w->name[0]) {
        snprintf(w->name, sizeof(w->name), "%s", device);
    }
}

static void poke_bar(const char *where, char *ops)
{
    Wanted w = { 0 };
    unsigned bar = 0;
    uint64_t size;
    Regs regs;

    sscanf(where, "%x:%x:%u", &w.vendor, &w.device, &bar);
    each_device(visit_find, &w);
    errno = ENODEV;
    if (!w.name[0]) {
        fail(where);
    }
    enable(w.name);
    if (!open_bar(w.name, bar, &regs, &size)) {
        fail(where);
    }
    operate(&regs, ops);
}

/* ---- CAN ---- */

typedef struct {
    struct nlmsghdr head;
    struct ifinfomsg info;
    char attrs[256];
} LinkRequest;

static void *add_attr(LinkRequest *q, int type, const void *data, int size)
{
    struct rtattr *a = (void *)((char *)q + NLMSG_ALIGN(q->head.nlmsg_len));

    a->rta_type = type;
    a->rta_len = RTA_LENGTH(size);
    if (size) {
        memcpy(RTA_DATA(a), data, size);
    }
    q->head.nlmsg_len = NLMSG_ALIGN(q->head.nlmsg_len) + RTA_ALIGN(a->rta_len);
    return a;
}

static void end_attr(LinkRequest *q, struct rtattr *a)
{
    a->rta_len = (char *)q + q->head.nlmsg_len - (char *)a;
}

static int index_of(const char *nic)
{
    struct ifreq ifr = { 0 };
    int s = socket(AF_INET, SOCK_DGRAM, 0);

    strncpy(ifr.ifr_name, nic, IFNAMSIZ - 1);
    need(ioctl(s, SIOCGIFINDEX, &ifr), nic);
    close(s);
    return ifr.ifr_ifindex;
}

/* 250 kbit/s, and up. */
static void start_can(const char *nic)
{
    LinkRequest q = { 0 };
    struct can_bittiming timing = { .bitrate = 250000 };
    struct rtattr *outer, *inner;
    struct { struct nlmsghdr head; int error; char rest[512]; } answer;
    int s = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);

    q.head.nlmsg_len = NLMSG_LENGTH(sizeof(q.info));
    q.head.nlmsg_type = RTM_NEWLINK;
    q.head.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK;
    q.info.ifi_index = index_of(nic);
    q.info.ifi_flags = q.info.ifi_change = IFF_UP;
    outer = add_attr(&q, IFLA_LINKINFO, NULL, 0);
    add_attr(&q, IFLA_INFO_KIND, "can", 3);
    inner = add_attr(&q, IFLA_INFO_DATA, NULL, 0);
    add_attr(&q, IFLA_CAN_BITTIMING, &timing, sizeof(timing));
    end_attr(&q, inner);
    end_attr(&q, outer);
    need(send(s, &q, q.head.nlmsg_len, 0), "netlink");
    need(recv(s, &answer, sizeof(answer), 0), "netlink");
    errno = -answer.error;
    need(answer.error, "start of a CAN controller");
    close(s);
}

static int open_can(const char *nic)
{
    struct sockaddr_can addr = { .can_family = AF_CAN,
                                 .can_ifindex = index_of(nic) };
    int s = socket(AF_CAN, SOCK_RAW, CAN_RAW);

    need(s, "CAN socket");
    need(bind(s, (void *)&addr, sizeof(addr)), nic);
    return s;
}

static void print_frame(int s)
{
    struct pollfd p = { .fd = s, .events = POLLIN };
    struct can_frame f;

    errno = ETIMEDOUT;
    if (poll(&p, 1, 20000) != 1) {
        fail("no CAN frame");
    }
    need(read(s, &f, sizeof(f)), "CAN frame");
    printf(" id %x, %d bytes:", f.can_id, f.can_dlc);
    for (int i = 0; i < f.can_dlc && i < 8; i++) {
        printf(" %02x", f.data[i]);
    }
    printf("\n");
}

static void poke_can(const char *from, const char *to)
{
    struct can_frame f = { .can_id = 0x123, .can_dlc = 8,
                           .data = "TT-FRAME" };
    int out, in;

    start_can(from);
    start_can(to);
    out = open_can(from);
    in = open_can(to);
    need(write(out, &f, sizeof(f)), "send a CAN frame");
    print_frame(in);
}

/* ---- management controllers, crypto ---- */

static void poke_ipmi(const char *number)
{
    struct ipmi_system_interface_addr addr = {
        .addr_type = IPMI_SYSTEM_INTERFACE_ADDR_TYPE,
        .channel = IPMI_BMC_CHANNEL,
    };
    struct ipmi_req request = {
        .addr = (void *)&addr, .addr_len = sizeof(addr),
        .msg = { .netfn = 6, .cmd = 1 },    /* Get Device ID */
    };
    uint8_t data[64];
    struct ipmi_recv answer = {
        .addr = (void *)&addr, .addr_len = sizeof(addr),
        .msg = { .data = data, .data_len = sizeof(data) },
    };
    struct pollfd p = { .events = POLLIN };
    char path[32];

    snprintf(path, sizeof(path), "/dev/ipmi%s", number);
    p.fd = open(path, O_RDWR);
    need(p.fd, path);
    need(ioctl(p.fd, IPMICTL_SEND_COMMAND, &request), "IPMI request");
    errno = ETIMEDOUT;
    if (poll(&p, 1, 20000) != 1) {
        fail("no IPMI answer");
    }
    need(ioctl(p.fd, IPMICTL_RECEIVE_MSG_TRUNC, &answer), "IPMI answer");
    for (int i = 0; i < answer.msg.data_len; i++) {
        printf(" %02x", data[i]);
    }
    printf("\n");
}

static void poke_aes(const char *driver)
{
    struct sockaddr_alg sa = { .salg_family = AF_ALG,
                               .salg_type = "skcipher" };
    char control[CMSG_SPACE(4) + CMSG_SPACE(sizeof(struct af_alg_iv) + 16)];
    uint8_t text[256];
    struct iovec iov = { text, sizeof(text) };
    struct msghdr msg = { .msg_control = control,
                          .msg_controllen = sizeof(control),
                          .msg_iov = &iov, .msg_iovlen = 1 };
    struct cmsghdr *c;
    int s = socket(AF_ALG, SOCK_SEQPACKET, 0), op;
    uint32_t encrypt = ALG_OP_ENCRYPT, ivlen = 16;

    memset(control, 0, sizeof(control));
    memset(text, 0x5a, sizeof(text));
    strncpy((char *)sa.salg_name, driver, sizeof(sa.salg_name) - 1);
    need(bind(s, (void *)&sa, sizeof(sa)), driver);
    need(setsockopt(s, SOL_ALG, ALG_SET_KEY, "0123456789abcdef", 16), "key");
    op = accept(s, NULL, 0);
    need(op, "AF_ALG");
    c = CMSG_FIRSTHDR(&msg);
    c->cmsg_level = SOL_ALG;
    c->cmsg_type = ALG_SET_OP;
    c->cmsg_len = CMSG_LEN(4);
    memcpy(CMSG_DATA(c), &encrypt, 4);
    c = CMSG_NXTHDR(&msg, c);
    c->cmsg_level = SOL_ALG;
    c->cmsg_type = ALG_SET_IV;
    c->cmsg_len = CMSG_LEN(sizeof(struct af_alg_iv) + 16);
    memcpy(CMSG_DATA(c), &ivlen, 4);
    need(sendmsg(op, &msg, 0), "encrypt");
    need(read(op, text, sizeof(text)), "encrypted text");
    for (unsigned i = 0; i < 16; i++) {
        printf(" %02x", text[i]);
    }
    printf("\n");
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    Regs ports = { 0 };

    setvbuf(stdout, NULL, _IOLBF, 0);
    if (!strcmp(what, "io") || !strcmp(what, "pci") || !strcmp(what, "bar")) {
        need(iopl(3), "ports");
    }
    if (!strcmp(what, "pci")) {
        each_device(visit_read, NULL);
    } else if (!strcmp(what, "io") && argc == 3) {
        operate(&ports, argv[2]);
    } else if (!strcmp(what, "mem") && argc == 3) {
        operate(NULL, argv[2]);
    } else if (!strcmp(what, "bar") && argc == 4) {
        poke_bar(argv[2], argv[3]);
    } else if (!strcmp(what, "can") && argc == 4) {
        poke_can(argv[2], argv[3]);
    } else if (!strcmp(what, "listen") && argc == 3) {
        print_frame(open_can(argv[2]));
    } else if (!strcmp(what, "ipmi") && argc == 3) {
        poke_ipmi(argv[2]);
    } else if (!strcmp(what, "aes") && argc == 3) {
        poke_aes(argv[2]);
    } else {
        printf("TT-FAIL poke: see its first comment\n");
        return 2;
    }
    return 0;
}
