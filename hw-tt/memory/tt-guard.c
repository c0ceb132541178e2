/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * -tt record,guard=on: finds each write to guest RAM from outside that does not reach
 * the log, and names the code that wrote (XenTT 3.6: page guarding).
 *
 * The RAM of a block is mapped twice. Devices, and all of QEMU, know the first
 * mapping, which is read-only; the vCPU's TLB leads to the second (alias). So a
 * write from outside faults, once per page:
 *
 *   closed --fault--> open: contents before and the writer's stack are kept, the
 *      ^               |    page is writable
 *      |               +--logged--> what is in the log becomes "before"; if that
 *      |                            is all that changed: closed again
 *      +--settle------ guest code goes on: what still differs was never logged
 *
 * A page that was logged in part goes read-only again, with what is known of it,
 * so that the next writer is named, too. Writes of the vCPU's own helpers through
 * the first mapping (SMM's save area) are let pass.
 *
 * Context: the fault handler runs in whatever thread writes; it takes no lock but
 * `lock`, and calls nothing that allocates. All else: BQL.
 */
#include "qemu/osdep.h"
#include "hw-tt/memory/tt-guard.h"
#include "accel-tt/tt-inputs.h"
#include "accel-tt/tt-position.h"
#include "accel-tt/tt-token.h"
#include "debug/tt-elfsyms.h"
#include "io/tt-base.h"
#include "pages/tt-page.h"
#include "run/tt-manifest.h"
#include "tt/hooks.h"
#include "qapi/error.h"
#include "hw/core/cpu.h"
#include "exec/memory.h"
#include "qemu/cutils.h"
#include "qemu/main-loop.h"
#include "qemu/error-report.h"
#include "exec/ramblock.h"
#include <execinfo.h>
#include <link.h>
#include <sys/mman.h>

#define OPEN_MAX        8192u   /* pages written between two turns of the vCPU */
#define STACKS_MAX      4u      /* of one page */
#define FRAMES_MAX      24
#define REPORTS_MAX     20u
#define GUARDED_MAX     TT_BLOCKS_MAX

typedef struct Stack {
    int n;
    bool unlocked;              /* the writer had no BQL */
    void *frames[FRAMES_MAX];
} Stack;

typedef struct Open {
    unsigned block;
    uint32_t page;              /* of the block */
    bool is_own;                /* the vCPU's: not compared */
    bool is_writable;
    unsigned n_stacks;
    Stack stacks[STACKS_MAX];
    uint8_t before[TT_PAGE_BYTES];
} Open;

typedef struct Guarded {
    void *ram_block;            /* NULL: gone */
    uint8_t *host, *alias;
    uint64_t len;               /* whole pages */
    uint32_t *opened;           /* of each page: number in `open`, plus one */
} Guarded;

bool tt_guard_is_on;

static struct {
    bool wanted, is_armed;
    bool lock;
    unsigned n;
    Guarded *blocks;
    Open *open;                 /* memory is touched when it is used */
    uint32_t n_open;
    uint64_t n_seen, n_reports, n_unwatched;
    struct sigaction before;
    TtElfSyms *names;
    GMappedFile *file;          /* theirs */
} guard;

void tt_guard_option(bool on)
{
    guard.wanted = on;
}

/* ---- in the fault handler ---- */

static void take_lock(void)
{
    while (qatomic_xchg(&guard.lock, true)) {
        cpu_relax();
    }
}

static void drop_lock(void)
{
    qatomic_store_release(&guard.lock, false);
}

static Guarded *find_host(const uint8_t *addr)
{
    for (unsigned i = 0; i < qatomic_load_acquire(&guard.n); i++) {
        Guarded *g = &guard.blocks[i];

        if (g->ram_block && addr >= g->host && addr < g->host + g->len) {
            return g;
        }
    }
    return NULL;
}

static void set_writable(const Guarded *g, uint32_t page, bool on)
{
    mprotect(g->host + (uint64_t)page * TT_PAGE_BYTES, TT_PAGE_BYTES,
             on ? PROT_READ | PROT_WRITE : PROT_READ);
}

static bool is_vcpus_own(void)
{
    return tt_token_is_mine() && current_cpu && current_cpu->running &&
        !tt_now.device_depth && !tt_now.acknowledging;
}

/* NULL: there are too many. */
static Open *open_page(Guarded *g, uint32_t page)
{
    Open *o;

    if (g->opened[page]) {
        return &guard.open[g->opened[page] - 1];
    }
    if (guard.n_open == OPEN_MAX) {
        guard.n_unwatched++;
        return NULL;
    }
    o = &guard.open[guard.n_open++];
    g->opened[page] = guard.n_open;
    o->block = g - guard.blocks;
    o->page = page;
    o->is_own = is_vcpus_own();
    o->is_writable = false;
    o->n_stacks = 0;
    memcpy(o->before, g->alias + (uint64_t)page * TT_PAGE_BYTES,
           TT_PAGE_BYTES);
    guard.n_seen++;
    return o;
}

static void fault(int sig, siginfo_t *info, void *context)
{
    Guarded *g = find_host(info->si_addr);
    int kept_errno = errno;
    uint32_t page;
    Open *o;

    if (!g) {
        sigaction(SIGSEGV, &guard.before, NULL);    /* it comes again there */
        return;
    }
    page = ((uint8_t *)info->si_addr - g->host) / TT_PAGE_BYTES;
    take_lock();
    o = open_page(g, page);
    if (o) {
        o->is_writable = true;
        if (o->n_stacks < STACKS_MAX && !o->is_own) {
            Stack *s = &o->stacks[o->n_stacks++];

            s->unlocked = !bql_locked();
            s->n = backtrace(s->frames, FRAMES_MAX);
        }
    }
    set_writable(g, page, true);
    drop_lock();
    errno = kept_errno;
}

/* ---- saying it ---- */

static int first_object(struct dl_phdr_info *info, size_t size, void *opaque)
{
    *(uint64_t *)opaque = info->dlpi_addr;      /* of this program */
    return 1;
}

static char *name_frame(void *frame)
{
    static uint64_t base;
    uint64_t offset, addr = (uintptr_t)frame;
    const char *name = NULL;
    g_autofree char **outside = NULL;

    if (!base) {
        dl_iterate_phdr(first_object, &base);
    }
    if (guard.names && addr > base) {
        /* A return address: one byte before it is still in the caller. */
        name = tt_elfsyms_find(guard.names, addr - base - 1, &offset);
    }
    if (name) {
        return g_strdup_printf("%s+0x%" PRIx64, name, offset + 1);
    }
    outside = backtrace_symbols(&frame, 1);
    return g_strdup(outside ? outside[0] : "?");
}

static bool is_ours(const char *name)
{
    return strstr(name, "libc.so") || g_str_has_prefix(name, "fault+") ||
        g_str_has_prefix(name, "backtrace");
}

static void tell_stack(const Stack *s)
{
    g_autoptr(GString) line = g_string_new(NULL);
    unsigned n = 0;

    for (int i = 1; i < s->n && n < 12; i++) {
        g_autofree char *name = name_frame(s->frames[i]);

        if (!n && is_ours(name)) {      /* the handler, and memcpy */
            continue;
        }
        g_string_append_printf(line, "%s%s", n++ ? " < " : "", name);
    }
    error_printf("tt: guard:   written by %s%s\n", line->str,
                 s->unlocked ? " (without holding QEMU's lock)" : "");
}

static void tell(const Open *o, const Guarded *g)
{
    const uint8_t *now = g->alias + (uint64_t)o->page * TT_PAGE_BYTES;
    unsigned first = 0, end = TT_PAGE_BYTES;
    const RAMBlock *rb = g->ram_block;

    if (guard.n_reports++ >= REPORTS_MAX) {
        return;
    }
    while (now[first] == o->before[first]) {
        first++;
    }
    while (now[end - 1] == o->before[end - 1]) {
        end--;
    }
    error_printf("tt: guard: a write that is not in the log, at position %"
                 PRIu64 ": RAM block %s, offset 0x%" PRIx64 ", within %u "
                 "bytes\n", tt_position(), *rb->idstr ? rb->idstr : "(no name)",
                 (uint64_t)o->page * TT_PAGE_BYTES + first, end - first);
    for (unsigned i = 0; i < o->n_stacks; i++) {
        tell_stack(&o->stacks[i]);
    }
}

/* ---- what is logged, and what is not ---- */

static bool is_as_before(const Open *o, const Guarded *g)
{
    return !memcmp(o->before, g->alias + (uint64_t)o->page * TT_PAGE_BYTES,
                   TT_PAGE_BYTES);
}

static Guarded *find_block(const void *ram_block)
{
    for (unsigned i = 0; i < guard.n; i++) {
        if (guard.blocks[i].ram_block == ram_block) {
            return &guard.blocks[i];
        }
    }
    return NULL;
}

void tt_guard_logged(const void *ram_block, uint64_t offset, uint64_t len)
{
    Guarded *g = find_block(ram_block);
    uint64_t end = offset + len;

    if (!g || !guard.n_open) {
        return;
    }
    take_lock();
    while (offset < end) {
        uint32_t page = offset / TT_PAGE_BYTES;
        uint64_t n = MIN(end, (page + 1ull) * TT_PAGE_BYTES) - offset;
        Open *o = g->opened[page] ? &guard.open[g->opened[page] - 1] : NULL;

        if (o) {
            memcpy(o->before + offset % TT_PAGE_BYTES, g->alias + offset, n);
            if (is_as_before(o, g)) {
                o->n_stacks = 0;
            }
            if (o->is_writable) {
                set_writable(g, page, false);
                o->is_writable = false;
            }
        }
        offset += n;
    }
    drop_lock();
}

static void settle(void)
{
    take_lock();
    for (uint32_t i = 0; i < guard.n_open; i++) {
        Open *o = &guard.open[i];
        Guarded *g = &guard.blocks[o->block];

        if (g->ram_block) {
            if (!o->is_own && !is_as_before(o, g)) {
                tell(o, g);
            }
            if (o->is_writable) {
                set_writable(g, o->page, false);
            }
            g->opened[o->page] = 0;
        }
    }
    guard.n_open = 0;
    drop_lock();
}

void tt_guard_settle(void)
{
    if (guard.n_open) {
        settle();
    }
}

void tt_guard_discarded(const void *ram_block, uint64_t start, uint64_t len)
{
    Guarded *g = tt_guard_is_on ? find_block(ram_block) : NULL;

    if (g) {                    /* QEMU takes it for memory without a file */
        memset(g->alias + start, 0, MIN(len, g->len - start));
    }
}

/* ---- the two mappings ---- */

ptrdiff_t tt_guard_shift_slow(const void *ram_block)
{
    const Guarded *g = find_block(ram_block);

    return g ? g->alias - g->host : 0;
}

void *tt_guard_host_slow(void *p)
{
    for (unsigned i = 0; i < guard.n; i++) {
        const Guarded *g = &guard.blocks[i];

        if ((uint8_t *)p >= g->alias && (uint8_t *)p < g->alias + g->len) {
            return g->host + ((uint8_t *)p - g->alias);
        }
    }
    return p;
}

static void *zeroed(size_t bytes)
{
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    return p == MAP_FAILED ? NULL : p;
}

/* False: errno says why. */
static bool map_twice(Guarded *g)
{
    int fd = memfd_create("tt-guard", MFD_CLOEXEC);
    bool ok;

    if (fd < 0 || ftruncate(fd, g->len)) {
        return false;
    }
    g->opened = zeroed(g->len / TT_PAGE_BYTES * sizeof(uint32_t));
    g->alias = mmap(NULL, g->len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    ok = g->opened && g->alias != MAP_FAILED;
    for (uint64_t at = 0; ok && at < g->len; at += TT_PAGE_BYTES) {
        if (!buffer_is_zero(g->host + at, TT_PAGE_BYTES)) {
            memcpy(g->alias + at, g->host + at, TT_PAGE_BYTES);
        }
    }
    ok = ok && mmap(g->host, g->len, PROT_READ, MAP_SHARED | MAP_FIXED, fd,
                    0) != MAP_FAILED;
    close(fd);
    return ok;
}

void tt_guard_add(void *ram_block)
{
    RAMBlock *rb = ram_block;
    Guarded g = {
        .ram_block = rb, .host = rb->host,
        .len = ROUND_UP(rb->used_length, TT_PAGE_BYTES),
    };

    if (!guard.is_armed || find_block(rb)) {
        return;
    }
    if (rb->fd >= 0) {
        warn_report("tt: guard: RAM block '%s' is backed by a file, so it is not guarded",
                    rb->idstr);
        return;
    }
    if (guard.n == GUARDED_MAX || !map_twice(&g)) {
        warn_report("tt: guard: RAM block '%s' cannot be guarded: %s",
                    rb->idstr, strerror(errno));
        return;
    }
    guard.blocks[guard.n] = g;
    qatomic_store_release(&guard.n, guard.n + 1);
}

void tt_guard_drop(void *ram_block)
{
    Guarded *g = find_block(ram_block);

    if (g) {
        tt_guard_settle();
        mprotect(g->host, g->len, PROT_READ | PROT_WRITE);
        g->ram_block = NULL;    /* the alias stays: some TLB may lead there */
    }
}

/* ---- start and end ---- */

static void load_names(void)
{
    TtDiag diag;

    guard.file = g_mapped_file_new("/proc/self/exe", false, NULL);
    if (guard.file) {
        tt_elfsyms_load((const uint8_t *)g_mapped_file_get_contents(guard.file),
                        g_mapped_file_get_length(guard.file), &guard.names,
                        &diag);
    }
}

bool tt_guard_start(Error **errp)
{
    struct sigaction act = { .sa_sigaction = fault, .sa_flags = SA_SIGINFO };
    void *frame;

    if (!guard.wanted) {
        return true;
    }
    guard.wanted = false;       /* of the first recording */
    guard.blocks = g_new0(Guarded, GUARDED_MAX);
    guard.open = zeroed(OPEN_MAX * sizeof(Open));
    if (!guard.open || qemu_real_host_page_size() != TT_PAGE_BYTES) {
        error_setg(errp, "guard=on does not work here: %s", guard.open ?
                   "it needs pages of 4 KiB" : strerror(errno));
        return false;
    }
    backtrace(&frame, 1);       /* loads what the handler must not */
    load_names();
    sigemptyset(&act.sa_mask);
    sigaction(SIGSEGV, &act, &guard.before);
    tt_guard_is_on = guard.is_armed = true;
    tt_settle_slow = tt_guard_settle;
    return true;
}

void tt_guard_stop(void)
{
    if (!guard.is_armed) {
        return;
    }
    tt_guard_settle();
    guard.is_armed = false;     /* the aliases stay, TLBs know them */
    for (unsigned i = 0; i < guard.n; i++) {
        if (guard.blocks[i].ram_block) {
            mprotect(guard.blocks[i].host, guard.blocks[i].len,
                     PROT_READ | PROT_WRITE);
        }
    }
    error_printf("tt: guard: pages were written by something other than a vCPU %" PRIu64
                 " times; %" PRIu64 " writes were not in the log\n", guard.n_seen,
                 guard.n_reports);
    if (guard.n_unwatched) {
        warn_report("tt: guard: %" PRIu64 " pages were not watched: too many at once",
                    guard.n_unwatched);
    }
}
