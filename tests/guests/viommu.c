/*
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Guest "viommu": gives an `edu` device memory through a virtio-iommu, well and badly.
 *
 * Device addresses are never those of the memory behind them. First the device does DMA
 * both ways. Then pages in the middle of many are taken away and given anew. Then the
 * guest maps and unmaps whatever the IOMMU takes, and attaches and detaches the device
 * while it works. At last DMA both ways is as at first. What cannot be told in advance is
 * folded: how often it looked at the device until that was ready, and what came of DMA
 * that the IOMMU was changed under.
 *
 * Options: parts=N, of 1, 2 and 4 (7). flights=N: DMA that ATTACH meets (4). reset=1: at
 * last it resets the machine with DMA under way, and does the first part again. across=0:
 * without pages of which one ends at 32 MiB. shifted=0: without memory that begins within
 * a page, which DMA by messages rounds. heavy=N: full memory is mapped so often. wrong=1:
 * it maps what ends before it begins; QEMU 10.0's IOMMU looks for that without end.
 */
#include "virtio.h"

const char guest_name[] = "viommu";

enum { EDU = 0x11e81234, IOMMU = 0x10571af4, KEEPER = 31 << 3 };
enum { SRC = 0x80, DST = 0x88, COUNT = 0x90, COMMAND = 0x98, BUFFER = 0x40000,
       RUN = 1, TO_RAM = 2, WORDS = PAGE / 4 };
enum { ATTACH = 1, DETACH = 2, MAP = 3, UNMAP = 4, MAP_UNMAP = 4, DOMAIN = 5 };
enum { OK = 0, INVAL = 4, RANGE = 5, NOENT = 6, UNSAID = 0xff };
enum { READ = 1, WRITE = 2, BOTH = 3, MMIO = 4 };
enum { FROM = 0x10000000, TO = 0x10001000, LARGE = 0x20000000, PAGES = 64, HOLE = 28,
       HOLES = 8, LOW = 0x1000000, END_OF_RAM = 64 << 20, MINE = 0x5a5a1234 };

typedef volatile u32 page_of_words[WORDS];

/* Kept over a reset: nothing else writes here. */
static volatile u32 *const boots = (u32 *)(39 << 20);

static volatile u32 *regs;
static page_of_words *const source = (page_of_words *)(32 << 20);
static page_of_words *const target = (page_of_words *)(33 << 20);
static page_of_words *const other = (page_of_words *)(34 << 20);
static page_of_words *const many = (page_of_words *)(36 << 20);
static u32 request[9], edu, seed = 3;
static volatile u32 answer;

/* ---- the IOMMU ---- */

static u32 find(u32 id)
{
    for (u32 devfn = 0; devfn < 256; devfn++) {
        if (pci_read(devfn, 0) == id) {
            return devfn;
        }
    }
    rt_fail("there is no device", id);
}

/* Its answer, to the last of @times. */
static u32 ask(u32 type, u32 words, u32 times)
{
    u16 next;

    request[0] = type;
    answer = UNSAID;
    virtio_descs[0] = (struct virtio_desc) { (u32)request, 0, 4 * words, VIRTIO_NEXT, 1 };
    virtio_descs[1] = (struct virtio_desc) { (u32)&answer, 0, 4, VIRTIO_WRITES, 0 };
    next = virtio_offer(times);
    for (u32 looks = 0; virtio_used.idx != next; looks++) {
        if (virtio_common[VIRTIO_STATUS] != VIRTIO_RUNS) {
            rt_fail("the IOMMU has stopped", type);
        }
    }
    fold(answer);
    return answer & 0xff;
}

static void want(u32 seen, u32 wanted, const char *what)
{
    if (seen != wanted) {
        rt_fail(what, seen);
    }
}

static void set_address(u32 word, u64 v)
{
    request[word] = (u32)v;
    request[word + 1] = (u32)(v >> 32);
}

static u32 attach(u32 endpoint, u32 flags)
{
    request[1] = DOMAIN;
    request[2] = endpoint;
    request[3] = flags;
    request[4] = 0;
    return ask(ATTACH, 5, 1);
}

static u32 detach(u32 endpoint)
{
    request[1] = DOMAIN;
    request[2] = endpoint;
    request[3] = request[4] = 0;
    return ask(DETACH, 5, 1);
}

static u32 map_times(u64 first, u64 last, u64 to, u32 flags, u32 times)
{
    request[1] = DOMAIN;
    set_address(2, first);
    set_address(4, last);
    set_address(6, to);
    request[8] = flags;
    return ask(MAP, 9, times);
}

static u32 map(u64 first, u64 last, u64 to, u32 flags)
{
    return map_times(first, last, to, flags, 1);
}

static u32 unmap(u64 first, u64 last)
{
    request[1] = DOMAIN;
    set_address(2, first);
    set_address(4, last);
    request[6] = 0;
    return ask(UNMAP, 7, 1);
}

static void give(u32 iova, page_of_words *page, u32 pages)
{
    want(map(iova, iova + pages * PAGE - 1, (u32)page, BOTH), OK, "MAP is refused");
}

static void take(u32 iova, u32 pages)
{
    want(unmap(iova, iova + pages * PAGE - 1), OK, "UNMAP is refused");
}

static void take_all(void)
{
    want(unmap(0, ~0ull), OK, "UNMAP of all is refused");
}

/* ---- the device ---- */

static void begin_dma(u32 from, u32 to, u32 command)
{
    regs[SRC / 4] = from;
    regs[DST / 4] = to;
    regs[COUNT / 4] = PAGE;
    regs[COMMAND / 4] = RUN | command;
}

static void end_dma(void)
{
    u32 looks = 0;

    while (regs[COMMAND / 4] & RUN) {
        looks++;
    }
    want(regs[0], 0x010000ed, "the device is gone");
    fold(looks);
}

/* To the device from @from, and on to @to. */
static void pass(u32 from, u32 to)
{
    begin_dma(from, BUFFER, 0);
    end_dma();
    begin_dma(BUFFER, to, TO_RAM);
    end_dma();
}

static void fill(volatile u32 *words)
{
    for (u32 i = 0; i < WORDS; i++) {
        words[i] = prng(&seed) << 8 | 1;
    }
}

static void clear(volatile u32 *words)
{
    memset((void *)words, 0, PAGE);
}

static void must_equal(const volatile u32 *seen, const volatile u32 *wanted, const char *what)
{
    for (u32 i = 0; i < WORDS; i++) {
        if (seen[i] != wanted[i]) {
            put_str(" at word");
            say("i", i);
            rt_fail(what, seen[i]);
        }
        fold(seen[i]);
    }
}

static void must_be_zeros(const volatile u32 *seen, const char *what)
{
    for (u32 i = 0; i < WORDS; i++) {
        want(seen[i], 0, what);
    }
}

static void ends(const char *what)
{
    put_str(what);
    say64("sum", rt_sum);
    put_char('\n');
}

/* ---- the parts ---- */

/* With FROM and TO mapped: what stands in @from comes to @to. */
static void both_ways(volatile u32 *from, volatile u32 *to)
{
    for (u32 round = 0; round < 4; round++) {
        fill(from);
        clear(to);
        pass(FROM, TO);
        must_equal(to, from, "DMA brought something else");
    }
}

/* Two pages of one mapping, which lie in two memories if the VM has two of 32 MiB. */
static void across(void)
{
    page_of_words *pages = source - 1;

    give(FROM, pages, 2);
    give(LARGE, target, 1);
    for (u32 i = 0; i < 2; i++) {
        fill(pages[i]);
        pass(FROM + i * PAGE, LARGE);
        must_equal(*target, pages[i], "of two pages one has something else");
    }
    take_all();
}

static void elsewhere(void)
{
    give(FROM, source, 1);
    give(TO, target, 1);
    both_ways(*source, *target);
    want(map(TO, TO + PAGE - 1, (u32)other, BOTH), INVAL, "it was mapped already");
    /* One page twice: what comes by one address is there at the other. */
    give(LARGE, target, 1);
    fill(*source);
    pass(FROM, TO);
    clear(*other);
    take(FROM, 1);
    give(FROM, other, 1);
    pass(LARGE, FROM);
    must_equal(*other, *source, "the other address has something else");
    take_all();
    if (option("across", 1)) {
        across();
    }
    ends("elsewhere");
}

/* All pages but those of the hole are there. */
static void around(void)
{
    for (u32 i = 0; i < PAGES; i++) {
        if (i < HOLE || i >= HOLE + HOLES) {
            fill(many[i]);
        }
    }
    for (u32 i = 0; i < PAGES; i += i == HOLE - 1 ? HOLES + 1 : 1) {
        clear(*target);
        pass(LARGE + i * PAGE, TO);
        must_equal(*target, many[i], "a page beside the hole has something else");
    }
}

/* What is not mapped has zeros for the device, and what it writes there goes nowhere. */
static void through_hole(void)
{
    u32 in_hole = LARGE + (HOLE + 2) * PAGE;

    give(FROM, source, 1);
    fill(*source);
    fill(*target);
    fill(many[HOLE + 2]);
    memcpy((void *)*other, (void *)many[HOLE + 2], PAGE);
    pass(in_hole, TO);
    must_be_zeros(*target, "the hole shows memory");
    pass(FROM, in_hole);
    must_equal(many[HOLE + 2], *other, "memory was written through the hole");
    clear(*other);
    give(in_hole, other, 1);
    fill(*target);
    pass(in_hole, TO);
    must_be_zeros(*target, "the new page shows what was there before");
    must_be_zeros(*other, "the new page got what was written before");
    pass(FROM, in_hole);
    must_equal(*other, *source, "the new page did not get its bytes");
    take(in_hole, 1);
    take(FROM, 1);
}

static void middle(void)
{
    u32 hole = LARGE + HOLE * PAGE, last = hole + HOLES * PAGE - 1;

    give(TO, target, 1);
    give(LARGE, many, PAGES);
    around();
    want(unmap(hole, last), RANGE, "a mapping was split");
    around();
    take(LARGE, PAGES);
    for (u32 i = 0; i < PAGES; i++) {
        give(LARGE + i * PAGE, &many[i], 1);
    }
    around();
    take(hole, HOLES);
    around();
    through_hole();
    around();
    take_all();
    ends("middle");
}

static const struct {
    u64 first, last, to;
} odd[] = {
    { 0, ~0ull, 0 },
    { 0, ~0ull, 0x123 },
    { 1, ~0ull, 32 << 20 },
    { ~0ull, ~0ull, 32 << 20 },
    { FROM, FROM, 32 << 20 },                           /* bytes */
    { FROM + 0xfff, FROM + 0x1000, 33 << 20 },
    { FROM + 1, FROM + 0x5ffe, 32 << 20 },
    { FROM + 0x800, FROM + 0x27ff, 32 << 20 },
    { FROM, FROM + 0x17ff, 32 << 20 },
    { FROM, FROM + PAGE - 1, (32 << 20) + 0x801 },
    { FROM, FROM + 0xfffff, 0x60000 },                  /* RAM, and what is none */
    { FROM, FROM + 0x1ffff, 0x90000 },
    { FROM, FROM + 2 * PAGE - 1, END_OF_RAM - PAGE },
    { FROM, FROM + PAGE - 1, END_OF_RAM - 0x800 },
    { FROM, FROM + 0x3fffffff, 0 },
    { FROM, FROM + PAGE - 1, 0xfee00000 },
    { FROM, FROM + PAGE - 1, ~0ull - 0x7ff },
    { FROM, FROM + 0xffff, 0xf0000 },                   /* the firmware */
    { 0xfee00000, 0xfee00fff, 32 << 20 },
    { (1ull << 36) - PAGE, (1ull << 36) + PAGE - 1, 32 << 20 },
    { (1ull << 36) - 0x100000, (1ull << 37), 16 << 20 },
    { 1ull << 40, (1ull << 40) + PAGE - 1, 32 << 20 },
    { 1ull << 63, ~0ull, 0 },
};

static void one_odd(u64 first, u64 last, u64 to)
{
    for (u32 flags = 0; flags <= (BOTH | MMIO); flags++) {
        want(map(first, last, to, flags), OK, "MAP of something odd is refused");
        want(map(first, first, to, flags), INVAL, "MAP over a mapping is not refused");
        if (flags == BOTH) {
            clear(*target);
            pass(FROM, FROM + PAGE);
        }
        want(unmap(first, first), first == last ? OK : RANGE, "UNMAP of a byte");
        want(unmap(0, ~0ull), OK, "UNMAP of all is refused");
        give(FROM, source, 1);
        give(TO, target, 1);
        fill(*source);
        pass(FROM, TO);
        must_equal(*target, *source, "after something odd DMA brought something else");
        take_all();
    }
}

/* Memory that begins within a page, which an IOMMU of pages could not give. */
static void shifted(void)
{
    volatile u32 *from = *source + WORDS / 2, *to = *target + WORDS / 4;

    want(map(FROM, FROM + PAGE - 1, (u32)from, BOTH), OK, "MAP within a page is refused");
    want(map(TO, TO + PAGE - 1, (u32)to, BOTH), OK, "MAP within a page is refused");
    both_ways(from, to);
    take_all();
}

static void one_way(void)
{
    want(map(FROM, FROM + PAGE - 1, (u32)source, READ), OK, "MAP to read is refused");
    want(map(TO, TO + PAGE - 1, (u32)target, WRITE), OK, "MAP to write is refused");
    both_ways(*source, *target);
    fill(*target);
    memcpy((void *)*other, (void *)*source, PAGE);
    pass(TO, FROM);                     /* the wrong way: whatever it reads, nobody gets */
    must_equal(*source, *other, "what was given to read was written");
    take_all();
}

static void away_and_back(void)
{
    want(attach(edu, 2), INVAL, "flags that do not exist");
    want(attach(0xfff8, 0), NOENT, "a device that does not exist");
    want(map(FROM, FROM + PAGE - 1, (u32)source, 8), INVAL, "flags that do not exist");
    want(ask(9, 5, 1), 2, "a request that does not exist");
    give(FROM, source, 1);
    give(TO, target, 1);
    want(attach(KEEPER, 0), OK, "a second ATTACH is refused");
    for (u32 i = 0; i < 3; i++) {
        want(detach(edu), OK, "DETACH is refused");
        want(detach(edu), NOENT, "DETACH of what is not attached");
        want(attach(edu, 0), OK, "ATTACH is refused");
        both_ways(*source, *target);
    }
    want(attach(edu, 1), INVAL, "bypass in a domain that does not");
    want(attach(edu, 0), OK, "ATTACH is refused");
    want(detach(KEEPER), OK, "DETACH is refused");
    want(attach(edu, 0), OK, "ATTACH is refused");      /* to an empty domain */
    give(FROM, source, 1);
    want(map_times(TO, TO + PAGE - 1, (u32)target, BOTH, VIRTIO_QUEUE), INVAL,
         "MAP of what is mapped");
    both_ways(*source, *target);
    take_all();
}

/* What it knows of domains after it was reset is its own affair. */
static void reset_iommu(void)
{
    give(FROM, source, 1);
    give(TO, target, 1);
    begin_dma(FROM, BUFFER, 0);
    virtio_start(MAP_UNMAP);
    end_dma();
    want(attach(edu, 0), OK, "ATTACH is refused");
    take_all();
    give(FROM, source, 1);
    give(TO, target, 1);
    both_ways(*source, *target);
    take_all();
}

/* Addresses that the device has with and without the IOMMU. */
static void in_flight(u32 flights)
{
    want(attach(KEEPER, 0), OK, "ATTACH is refused");
    give(LOW, source, 1);
    give(LOW + PAGE, target, 1);
    for (u32 i = 0; i < 2 * flights; i++) {
        fill(*source);
        begin_dma(i & 2 ? LOW : BUFFER, i & 2 ? BUFFER : LOW + PAGE, i & 2 ? 0 : TO_RAM);
        if (i & 1) {
            want(detach(edu), OK, "DETACH is refused");
        }
        want(attach(edu, 0), OK, "ATTACH is refused");
        end_dma();
        for (u32 at = 0; at < WORDS; at++) {
            fold((*target)[at]);
        }
    }
    want(detach(KEEPER), OK, "DETACH is refused");
    take_all();
}

static void hostile(void)
{
    for (u32 i = 0; i < sizeof odd / sizeof odd[0]; i++) {
        one_odd(odd[i].first, odd[i].last, odd[i].to);
    }
    one_odd(FROM, FROM + PAGE - 1, (u32)regs);
    if (option("wrong", 0)) {
        say("wrong", map(FROM + 5 * PAGE, FROM + PAGE, (u32)source, BOTH));
        say("unmap", unmap(FROM + 5 * PAGE, FROM + PAGE));
        say("all", unmap(0, ~0ull));
        want(detach(edu), OK, "DETACH is refused");
        want(attach(edu, 0), OK, "ATTACH is refused");
    }
    ends("odd");
    if (option("shifted", 1)) {
        shifted();
    }
    one_way();
    ends("one way");
    away_and_back();
    reset_iommu();
    ends("away and back");
    in_flight(option("flights", 4));
    ends("in flight");
}

static void reset_machine(void)
{
    *boots = MINE;
    give(LOW, source, 1);
    give(LARGE, many, PAGES);
    begin_dma(LOW, BUFFER, 0);
    outb(0xcf9, 2);
    outb(0xcf9, 6);
    for (;;) {
        hlt();
    }
}

/* Memory that is full, many times: each costs the host as much. */
static void be_heavy(u32 times)
{
    u32 mib = 1 << 20, bytes = 24 * mib;

    for (u32 *word = (u32 *)(40 * mib); (u32)word < 64 * mib; word += WORDS) {
        *word = (u32)word;
    }
    for (u32 i = 0; i < times; i++) {
        u64 first = (u64)i << 25;

        want(map(first, first + bytes - 1, 40 * mib, BOTH), OK, "MAP is refused");
    }
    ends("heavy");
    take_all();
}

void main(void)
{
    u32 parts = option("parts", 7);

    edu = find(EDU);
    virtio_find(find(IOMMU));
    pci_write(edu, 4, pci_read(edu, 4) | 6);
    regs = (u32 *)(pci_read(edu, 0x10) & ~15u);
    virtio_start(MAP_UNMAP);
    rt_timer(1000);
    want(map(FROM, FROM + PAGE - 1, (u32)source, BOTH), NOENT, "MAP without a domain");
    want(attach(edu, 0), OK, "ATTACH is refused");
    if (parts & 1 || *boots == MINE) {
        elsewhere();
    }
    if (*boots == MINE) {
        return;
    }
    if (parts & 2) {
        middle();
    }
    if (option("heavy", 0)) {
        be_heavy(option("heavy", 0));
    }
    if (parts & 4) {
        hostile();
        elsewhere();
    }
    if (option("reset", 0)) {
        reset_machine();
    }
}
