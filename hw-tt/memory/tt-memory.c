/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Guest memory at the boundary: which RAM blocks there are, and every write to them
 * that no vCPU instruction made. Where the guest sees them is in tt-memory-map.c,
 * which pages were written in tt-memory-pages.c.
 *
 * A block is numbered when the guest can first see it (it appears in the memory
 * map of an address space): only then do its contents matter, and only then is
 * it safe to take them, since device code fills a new block without telling
 * anyone. A block that is never mapped (the fw_cfg blobs that QEMU rewrites) is
 * neither in the log nor in the digest.
 *
 * In a replay the blocks are ours: plain RAM with the recorded names.
 */
#include "qemu/osdep.h"
#include "accel-tt/tt-vcpus.h"
#include "hw-tt/memory/tt-memory.h"
#include "hw-tt/memory/tt-memory-watch.h"
#include "hw-tt/memory/tt-block.h"
#include "hw-tt/memory/tt-guard.h"
#include "io/tt-base.h"
#include "log/tt-log.h"
#include "pages/tt-page.h"
#include "run/tt-manifest.h"
#include "session/tt-ops.h"
#include "session/tt-session.h"
#include "tt-memory-held-int.h"
#include "tt-memory-int.h"
#include "tt/hooks.h"
#include "exec/address-spaces.h"
#include "qapi/error.h"
#include "hw/core/cpu.h"
#include "exec/memory.h"
#include "qemu/main-loop.h"
#include "qemu/cutils.h"
#include "qemu/rcu.h"
#include "qemu/error-report.h"
#include "exec/address-spaces.h"
#include "exec/cpu-common.h"
#include "exec/ramblock.h"
#include "exec/ram_addr.h"
#define XXH_INLINE_ALL
#include <xxhash.h>

static struct {
    TtMemoryCompare *compare;
    TtMemoryFill *fill;
} ops;

static GPtrArray *blocks;           /* of TtBlock */
static unsigned n_live;             /* blocks the guest has seen by now */
static uint64_t n_pages;

/* The same of the world that is not shown: see tt-past.c. */
static struct {
    GPtrArray *blocks;
    unsigned n_live;
    uint64_t n_pages;
} aside;

unsigned tt_memory_n_blocks(void)
{
    return n_live;
}

unsigned tt_memory_n_made(void)
{
    return blocks ? blocks->len : 0;
}

TtBlock *tt_memory_block(unsigned index)
{
    return g_ptr_array_index(blocks, index);
}

uint64_t tt_memory_n_pages(void)
{
    return n_pages;
}

static TtBlock *add_block(const char *name, uint64_t size, uint32_t flags)
{
    TtBlock *b = g_new0(TtBlock, 1);

    g_strlcpy(b->name, name, sizeof(b->name));
    b->size_bytes = size;
    b->flags = flags;
    b->first_page = n_pages;
    n_pages += DIV_ROUND_UP(size, TT_PAGE_BYTES);
    if (!blocks) {
        blocks = g_ptr_array_new();
    }
    g_ptr_array_add(blocks, b);
    return b;
}

static void forget_blocks(void)
{
    if (blocks) {
        g_ptr_array_foreach(blocks, (GFunc)g_free, NULL);
        g_ptr_array_free(blocks, true);
        blocks = NULL;
    }
    n_live = 0;
    n_pages = 0;
}

/* ---- recording: blocks and what is written to them ---- */

int tt_memory_find(RAMBlock *rb)
{
    static unsigned last;

    if (last < n_live && tt_memory_block(last)->ram_block == rb) {
        return last;
    }
    for (unsigned i = 0; i < n_live; i++) {
        if (tt_memory_block(i)->ram_block == rb) {
            last = i;
            return i;
        }
    }
    return -1;
}

uint32_t tt_memory_locate(void *host, uint64_t *offset)
{
    ram_addr_t at = 0;
    RAMBlock *rb = qemu_ram_block_from_host(host, false, &at);
    int index = rb ? tt_memory_find(rb) : -1;

    *offset = at;
    return index < 0 ? UINT32_MAX : index;
}

void tt_memory_log_bytes(unsigned index, uint64_t offset, uint64_t len)
{
    const uint8_t *host = tt_memory_block(index)->host;

    while (len) {
        uint32_t n = MIN(len, TT_LOG_DATA_MAX);
        TtEvent ev = {
            .kind = TT_EV_RAM, .addr = index, .val = offset,
            .len = n, .data = host + offset,
        };

        tt_log_event(&ev);
        offset += n;
        len -= n;
    }
}

/* @differs: the pages that a replay does not have yet; NULL: all but zeros. */
static void log_contents(unsigned index, const unsigned long *differs)
{
    TtBlock *b = tt_memory_block(index);
    uint64_t at, from = 0, end = 0;
    TtHeld held;

    tt_held_begin(&held, b);
    for (at = 0; at < b->size_bytes; at += TT_PAGE_BYTES) {
        uint64_t n = MIN(TT_PAGE_BYTES, b->size_bytes - at);

        if (differs ? test_bit(at / TT_PAGE_BYTES, differs) :
            tt_held_may(&held, at / TT_PAGE_BYTES) &&
            !buffer_is_zero(b->host + at, n)) {
            if (end != at) {
                tt_memory_log_bytes(index, from, end - from);
                from = at;
            }
            end = at + n;
        }
    }
    tt_memory_log_bytes(index, from, end - from);
    tt_held_end(&held);
}

unsigned tt_memory_register(MemoryRegion *mr)
{
    RAMBlock *rb = mr->ram_block;
    int index = tt_memory_find(rb);
    g_autofree unsigned long *differs = NULL;
    const char *name;
    TtBlock *b;
    TtEvent ev = { .kind = TT_EV_BLOCK };

    if (index >= 0) {
        return index;
    }
    name = *rb->idstr ? rb->idstr : memory_region_name(mr);
    b = add_block(*name ? name : "memory", rb->used_length,
                  (mr->rom_device ? TT_BLOCK_ROMD : 0) |
                  (mr->readonly ? TT_BLOCK_ROM : 0));
    b->ram_block = rb;
    b->mr = mr;
    b->host = rb->host;
    tt_guard_add(rb);
    ev.addr = index = n_live;
    ev.val = b->size_bytes;
    differs = ops.compare ? ops.compare(b) : NULL;
    ev.aux = b->flags | (differs ? TT_BLOCK_PARENT : 0);
    ev.data = (const uint8_t *)b->name;
    ev.len = strlen(b->name);
    n_live++;
    tt_log_event(&ev);
    log_contents(index, differs);
    return index;
}

/* @adopted: only those of devices that are gone. */
static void destroy_blocks(bool adopted)
{
    for (unsigned i = 0; blocks && i < blocks->len; i++) {
        if (!adopted || tt_memory_block(i)->is_adopted) {
            tt_block_destroy(tt_memory_block(i));
        }
    }
}

/*
 * The device that has this block goes. Memory that the guest once saw belongs to the
 * run, so it is kept in memory of our own, which is all dirty at first.
 */
static void adopt_block(TtBlock *b)
{
    const uint8_t *contents = b->host;

    tt_block_create(b, &error_fatal);
    for (uint64_t at = 0; at < b->size_bytes; at += TT_PAGE_BYTES) {
        size_t n = MIN(TT_PAGE_BYTES, b->size_bytes - at);

        if (!buffer_is_zero(contents + at, n)) {    /* a page not used costs nothing */
            memcpy(b->host + at, contents + at, n);
        }
    }
    b->is_adopted = true;
}

static void block_removed(RAMBlockNotifier *n, void *host, size_t size,
                          size_t max_size)
{
    ram_addr_t offset;
    RAMBlock *rb = qemu_ram_block_from_host(host, false, &offset);
    bool turned = tt_memory_turn_to_present(rb);
    int index = tt_memory_find(rb);

    if (tt_guard_is_on) {
        tt_guard_drop(rb);
    }
    if (index >= 0 && tt_recording()) {
        adopt_block(tt_memory_block(index));
    }
    if (turned) {
        tt_world_swap();
    }
}

/* ---- replay: blocks from the log ---- */

/* It may come from anybody, and go to a terminal. */
static bool is_name(const char *name)
{
    size_t n = strlen(name);

    for (const char *p = name; *p; p++) {
        if (!g_ascii_isprint(*p)) {
            return false;
        }
    }
    return n && n <= TT_BLOCK_NAME_MAX;
}

/* Block @index, the next one or one that is there since before we travelled. */
static bool ensure_block(uint64_t index, const char *name, uint64_t size,
                         uint32_t flags, Error **errp)
{
    unsigned n = blocks ? blocks->len : 0;
    TtBlock *b;

    if (index > n || index >= TT_BLOCKS_MAX || !size ||
        size > TT_BLOCK_BYTES_MAX || !is_name(name) || (index == n &&
        DIV_ROUND_UP(size, TT_PAGE_BYTES) > TT_PAGES_MAX - n_pages)) {
        error_setg(errp, "the run is damaged: its RAM block %" PRIu64 " is invalid",
                   index);
        return false;
    }
    if (index < n) {
        b = tt_memory_block(index);
        if (b->size_bytes != size || strcmp(b->name, name)) {
            error_setg(errp, "the run is damaged: RAM block %" PRIu64 " appears twice, "
                       "with different names or sizes", index);
            return false;
        }
        return true;
    }
    b = add_block(name, size, flags);
    if (!tt_block_create(b, errp)) {
        g_ptr_array_set_size(blocks, n);
        n_pages = b->first_page;
        g_free(b);
        return false;
    }
    return true;
}

static bool apply_block(const TtEvent *ev, Error **errp)
{
    g_autofree char *name = g_strndup(ev->len ? (const char *)ev->data : "",
                                      ev->len);
    TtBlock *b;

    if (ev->addr != n_live) {
        error_setg(errp, "the run is damaged: RAM block %" PRIu64 " of the log is out of "
                   "order",
                   ev->addr);
        return false;
    }
    if (!ensure_block(ev->addr, name, ev->val, ev->aux & ~TT_BLOCK_PARENT,
                      errp)) {
        return false;
    }
    n_live++;
    if (!(ev->aux & TT_BLOCK_PARENT)) {
        return true;
    }
    b = tt_memory_block(ev->addr);
    if (!ops.fill(b, errp)) {
        return false;
    }
    tt_ram_changed(b->mr, 0, b->size_bytes);
    return true;
}

static bool apply_ram(const TtEvent *ev, Error **errp)
{
    bool fill = ev->kind == TT_EV_RAM_FILL;
    uint64_t len = fill ? (ev->len == 8 ? tt_get_le64(ev->data) : 0) : ev->len;
    TtBlock *b = ev->addr < n_live ? tt_memory_block(ev->addr) : NULL;

    if (!b || ev->val > b->size_bytes || len > b->size_bytes - ev->val) {
        error_setg(errp, "a write of %" PRIu64 " bytes at %" PRIu64
                   " of RAM block %" PRIu64 " lies outside it", len, ev->val,
                   ev->addr);
        return false;
    }
    if (fill) {
        memset(b->host + ev->val, ev->aux, len);
    } else {
        memcpy(b->host + ev->val, ev->data, len);
    }
    if (len && !(tt_omit & TT_OMIT_DMA_INVALIDATE)) {
        tt_memory_applies = true;
        tt_ram_changed(b->mr, ev->val, len);
        tt_memory_applies = false;
    }
    tt_memory_watch_note(b->mr, ev->val, len, true);
    return true;
}

static void swap(void)
{
    typeof(aside) t = aside;

    aside.blocks = blocks;
    aside.n_live = n_live;
    aside.n_pages = n_pages;
    blocks = t.blocks;
    n_live = t.n_live;
    n_pages = t.n_pages;
}

bool tt_memory_apply(const TtEvent *ev, Error **errp)
{
    switch (ev->kind) {
    case TT_EV_BLOCK:
        return apply_block(ev, errp);
    case TT_EV_RAM:
    case TT_EV_RAM_FILL:
        return apply_ram(ev, errp);
    case TT_EV_MAP:
        return tt_memory_map_apply(ev, errp);
    default:
        error_setg(errp, "event kind %u does not concern memory", ev->kind);
        return false;
    }
}

/* ---- start and end ---- */

/* A host kernel is told anew which RAM it logs writes to: it does so while -tt is
 * on. */
static void renew_dirty_log(void)
{
    MemoryRegion *root = get_system_memory();

    if (tt_backend->logs_writes_in_host) {
        memory_region_transaction_begin();
        memory_region_set_enabled(root, false);
        memory_region_set_enabled(root, true);
        memory_region_transaction_commit();
    }
}

void tt_memory_record_start(CPUState *cpu)
{
    static RAMBlockNotifier notifier = { .ram_block_removed = block_removed };
    static bool notified;

    if (!notified) {
        notified = true;
        ram_block_notifier_add(&notifier);
    }
    renew_dirty_log();
    tt_memory_map_watch(cpu);
}

void tt_memory_record_stop(void)
{
    tt_memory_map_unwatch();
    destroy_blocks(true);
    forget_blocks();
    renew_dirty_log();
}

void tt_memory_leave_past(void)
{
    tt_memory_map_leave_past();
    destroy_blocks(false);
    forget_blocks();
}

/* ---- checkpoints ---- */

void tt_memory_show(unsigned n)
{
    n_live = n;
}

GByteArray *tt_memory_blocks_save(void)
{
    GByteArray *a = g_byte_array_new();

    for (unsigned i = 0; i < n_live; i++) {
        const TtBlock *b = tt_memory_block(i);
        uint8_t head[16];

        tt_put_le64(head, b->size_bytes);
        tt_put_le32(head + 8, b->flags);
        tt_put_le32(head + 12, strlen(b->name));
        g_byte_array_append(a, head, sizeof(head));
        g_byte_array_append(a, (const uint8_t *)b->name, strlen(b->name));
    }
    return a;
}

bool tt_memory_blocks_load(const uint8_t *data, size_t len, unsigned n,
                           Error **errp)
{
    size_t at = 0;

    for (unsigned i = 0; i < n; i++) {
        g_autofree char *name = NULL;
        uint32_t name_len;

        if (len - at < 16 ||
            (name_len = tt_get_le32(data + at + 12)) > TT_BLOCK_NAME_MAX ||
            name_len > len - at - 16) {
            error_setg(errp, "the run is damaged: its list of RAM blocks is invalid");
            return false;
        }
        name = g_strndup((const char *)data + at + 16, name_len);
        if (!ensure_block(i, name, tt_get_le64(data + at),
                          tt_get_le32(data + at + 8), errp)) {
            return false;
        }
        at += 16 + name_len;
    }
    return true;
}

void tt_memory_init(void)
{
    tt_world_notify(swap);
}

void tt_memory_on_compare(TtMemoryCompare *compare)
{
    ops.compare = compare;
}

void tt_memory_on_fill(TtMemoryFill *fill)
{
    ops.fill = fill;
}
