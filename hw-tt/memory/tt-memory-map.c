/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The memory map at the boundary: the addresses at which the guest sees each RAM block,
 * in each address space of a vCPU.
 *
 * In a replay the blocks are mapped by aliases in a container of our own, which
 * replaces the root of the vCPU's address spaces.
 */
#include "qemu/osdep.h"
#include "accel-tt/tt-vcpus.h"
#include "hw-tt/memory/tt-block.h"
#include "hw-tt/memory/tt-memory.h"
#include "io/tt-base.h"
#include "log/tt-log.h"
#include "pages/tt-page.h"
#include "run/tt-cpstate.h"
#include "run/tt-manifest.h"
#include "session/tt-ops.h"
#include "session/tt-session.h"
#include "tt-memory-int.h"
#include "tt/hooks.h"
#include "qapi/error.h"
#include "hw/core/cpu.h"
#include "exec/memory.h"
#include "exec/address-spaces.h"

#define SECTION_BYTES 32    /* le32 block, le32 flags, le64 gpa, size, offset */
#define N_SPACES      2     /* normal, SMM */

/* ---- recording ---- */

typedef struct MapWatch {
    MemoryListener listener;
    unsigned space;
    bool touched;
    GByteArray *now, *last;
} MapWatch;

static MapWatch watches[N_SPACES];
static bool is_changed;

static void put_section(GByteArray *a, uint32_t block, uint32_t flags,
                        uint64_t gpa, uint64_t size, uint64_t offset)
{
    uint8_t s[SECTION_BYTES];

    tt_put_le32(s, block);
    tt_put_le32(s + 4, flags);
    tt_put_le64(s + 8, gpa);
    tt_put_le64(s + 16, size);
    tt_put_le64(s + 24, offset);
    g_byte_array_append(a, s, sizeof(s));
}

static void map_begin(MemoryListener *l)
{
    MapWatch *w = container_of(l, MapWatch, listener);

    g_byte_array_set_size(w->now, 0);
    w->touched = false;
}

/* KVM's slots do not know of an alias that is read-only (the PAM registers of a PC make
 * such): there the guest does write to the RAM behind it. */
static bool is_readonly(const MemoryRegionSection *s)
{
    return tt_backend->counts_exits ? s->mr->readonly : s->readonly;
}

static void map_add(MemoryListener *l, MemoryRegionSection *s)
{
    MapWatch *w = container_of(l, MapWatch, listener);
    bool romd = memory_region_is_romd(s->mr);

    w->touched = true;
    if (!tt_recording() || !tt_session.live || (!memory_region_is_ram(s->mr) && !romd)) {
        return;
    }
    put_section(w->now, tt_memory_register(s->mr),
                (is_readonly(s) ? TT_BLOCK_ROM : 0) | (romd ? TT_BLOCK_ROMD : 0),
                s->offset_within_address_space, int128_get64(s->size),
                s->offset_within_region);
}

static void map_del(MemoryListener *l, MemoryRegionSection *s)
{
    container_of(l, MapWatch, listener)->touched = true;
}

/* TCG empties its TLBs at each commit, whatever has changed: of a device that is plugged
 * in, say. So there is an event for each, and a replay does the same. */
static void map_commit(MemoryListener *l)
{
    MapWatch *w = container_of(l, MapWatch, listener);
    TtEvent ev = { .kind = TT_EV_MAP, .addr = w->space };

    if (!tt_recording() || !tt_session.live) {
        return;
    }
    if (w->touched && (w->now->len != w->last->len ||
                       memcmp(w->now->data, w->last->data, w->now->len))) {
        GByteArray *t = w->now;

        w->now = w->last;
        w->last = t;
        is_changed = true;
    } else if (w->space || tt_backend->counts_exits || tt_omit & TT_OMIT_MAP_COMMIT) {
        return;
    }
    ev.data = w->last->data;
    ev.len = w->last->len;
    tt_log_event(&ev);
}

void tt_memory_map_watch(CPUState *cpu)
{
    for (unsigned i = 0; i < MIN(N_SPACES, cpu->num_ases); i++) {
        watches[i] = (MapWatch) {
            .space = i,
            .now = g_byte_array_new(),
            .last = g_byte_array_new(),
            .listener = {
                .name = "tt", .priority = MEMORY_LISTENER_PRIORITY_MIN,
                .begin = map_begin, .region_add = map_add,
                .region_nop = map_add, .region_del = map_del,
                .commit = map_commit,
            },
        };
        memory_listener_register(&watches[i].listener,
                                 cpu_get_address_space(cpu, i));
    }
}

bool tt_memory_map_has_changed(void)
{
    bool was = is_changed;

    is_changed = false;
    return was;
}

void tt_memory_map_unwatch(void)
{
    for (unsigned i = 0; i < N_SPACES && watches[i].now; i++) {
        memory_listener_unregister(&watches[i].listener);
        g_byte_array_unref(watches[i].now);
        g_byte_array_unref(watches[i].last);
    }
    memset(watches, 0, sizeof(watches));
}

/* ---- replay ---- */

static MemoryRegion *roots[N_SPACES];
/* In a process that records: what the vCPUs see in the present. */
static MemoryRegion *present_roots[TT_VCPUS_MAX][N_SPACES];
static GPtrArray *aliases[N_SPACES];
static GByteArray *current_map[N_SPACES];

/*
 * QEMU's own table has room for 4096 sections (system/physmem.c), and ends when that
 * is not enough. Where one of ours does not begin or end with a page it takes five;
 * and it may lie across another one and be two. No machine has a tenth of that.
 */
#define COST_MAX    (4096 - 256)

static unsigned cost_of(uint64_t gpa, uint64_t size)
{
    return (gpa | size) % TT_PAGE_BYTES ? 10 : 2;
}

/*
 * A page of the guest's that lies in RAM as a whole is a page of its block: the TLB
 * takes nothing else. Parts of pages go through QEMU's subpages, which take any offset
 * (tpm-crb has 0xf80 bytes at 0xfed40080).
 */
static bool has_pages_of_its_block(uint64_t gpa, uint64_t size, uint64_t offset)
{
    uint64_t in_first = -gpa % TT_PAGE_BYTES;

    return (gpa ^ offset) % TT_PAGE_BYTES == 0 ||
        size < in_first || size - in_first < TT_PAGE_BYTES;
}

/* @known: how many blocks there are. */
static bool map_is_valid(const uint8_t *data, size_t len, unsigned known,
                         Error **errp)
{
    unsigned cost = 0;
    size_t at;

    for (at = 0; at + SECTION_BYTES <= len; at += SECTION_BYTES) {
        const uint8_t *s = data + at;
        uint32_t block = tt_get_le32(s);
        uint64_t gpa = tt_get_le64(s + 8), size = tt_get_le64(s + 16);
        uint64_t offset = tt_get_le64(s + 24);
        TtBlock *b = block < known ? tt_memory_block(block) : NULL;

        if (!b || !size || offset > b->size_bytes ||
            size > ROUND_UP(b->size_bytes, TT_PAGE_BYTES) - offset ||
            gpa + size < gpa || !has_pages_of_its_block(gpa, size, offset) ||
            (cost += cost_of(gpa, size)) > COST_MAX) {
            break;
        }
    }
    if (at != len) {
        error_setg(errp, "the memory map in the log is damaged");
        return false;
    }
    return true;
}

static void free_aliases(GPtrArray *old)
{
    for (unsigned i = 0; i < old->len; i++) {
        MemoryRegion *mr = g_ptr_array_index(old, i);

        object_unparent(OBJECT(mr));        /* drops the only reference */
        g_free(mr);
    }
    g_ptr_array_free(old, true);
}

static void add_alias(unsigned space, const uint8_t *s)
{
    TtBlock *b = tt_memory_block(tt_get_le32(s));
    uint32_t flags = tt_get_le32(s + 4);
    MemoryRegion *mr = g_new0(MemoryRegion, 1);

    memory_region_init_alias(mr, NULL, "tt-ram", b->mr, tt_get_le64(s + 24),
                             tt_get_le64(s + 16));
    if (flags & TT_BLOCK_ROM) {
        memory_region_set_readonly(mr, true);
    }
    memory_region_add_subregion(roots[space], tt_get_le64(s + 8), mr);
    g_ptr_array_add(aliases[space], mr);
}

/* All vCPUs see the same. */
static void use_root(unsigned space)
{
    for (unsigned i = 0; i < tt_vcpus_count(); i++) {
        AddressSpace *as = cpu_get_address_space(tt_vcpus_at(i), space);

        if (as->root != roots[space]) {
            present_roots[i][space] = as->root;
            as->root = roots[space];
        }
    }
}

static void set_map(unsigned space, const uint8_t *data, size_t len)
{
    GPtrArray *old = aliases[space];
    size_t at;

    memory_region_transaction_begin();
    if (!roots[space]) {
        roots[space] = g_new0(MemoryRegion, 1);
        memory_region_init(roots[space], NULL, "tt-root", UINT64_MAX);
        current_map[space] = g_byte_array_new();
        if (!space && !tt_past) {       /* for dumps: nothing else is there */
            memory_region_add_subregion(get_system_memory(), 0, roots[space]);
        }
    }
    use_root(space);
    for (unsigned i = 0; old && i < old->len; i++) {
        memory_region_del_subregion(roots[space], g_ptr_array_index(old, i));
    }
    aliases[space] = g_ptr_array_new();
    for (at = 0; at < len; at += SECTION_BYTES) {
        add_alias(space, data + at);
    }
    memory_region_transaction_commit();
    if (old) {
        free_aliases(old);
    }
    g_byte_array_set_size(current_map[space], 0);
    g_byte_array_append(current_map[space], data, len);
}

static void leave_root(unsigned space)
{
    for (unsigned i = 0; i < tt_vcpus_count(); i++) {
        if (present_roots[i][space]) {
            cpu_get_address_space(tt_vcpus_at(i), space)->root =
                present_roots[i][space];
            present_roots[i][space] = NULL;
        }
    }
}

static unsigned n_spaces(void)
{
    return MIN(N_SPACES, first_cpu->num_ases);
}

void tt_memory_map_leave_past(void)
{
    memory_region_transaction_begin();
    for (unsigned i = 0; i < n_spaces(); i++) {
        if (roots[i]) {
            set_map(i, NULL, 0);
            leave_root(i);
        }
    }
    memory_region_transaction_commit();
}

bool tt_memory_map_apply(const TtEvent *ev, Error **errp)
{
    if (ev->addr >= n_spaces()) {
        error_setg(errp, "the log maps address space %" PRIu64 ", which this CPU does "
                   "not have", ev->addr);
        return false;
    }
    if (!map_is_valid(ev->data, ev->len, tt_memory_n_blocks(), errp)) {
        return false;
    }
    set_map(ev->addr, ev->data, ev->len);
    return true;
}

/* ---- checkpoints ---- */

void tt_memory_map_save(TtMapState *ms)
{
    ms->n_blocks = tt_memory_n_blocks();
    for (unsigned i = 0; i < N_SPACES; i++) {
        const GByteArray *map = tt_recording() ? watches[i].last :
            current_map[i];

        ms->sections[i] = NULL;
        if (map) {
            ms->sections[i] = g_byte_array_new();
            g_byte_array_append(ms->sections[i], map->data, map->len);
        }
    }
}

bool tt_memory_map_load(TtMapState *ms, const TtCpState *s, Error **errp)
{
    memset(ms, 0, sizeof(*ms));
    if (!tt_memory_blocks_load(s->blocks.data, s->blocks.len, s->n_blocks, errp)) {
        return false;
    }
    for (unsigned i = 0; i < N_SPACES; i++) {
        if (!map_is_valid(s->map[i].data, s->map[i].len, s->n_blocks, errp)) {
            tt_memory_map_free(ms);
            return false;
        }
        ms->sections[i] = g_byte_array_new();
        g_byte_array_append(ms->sections[i], s->map[i].data, s->map[i].len);
    }
    ms->n_blocks = s->n_blocks;
    return true;
}

static uint64_t changes;

static void count_change(MemoryListener *l)
{
    changes++;
}

/* Every change of every address space counts: nothing less tells whether copies of TLBs
 * can still be used. */
uint64_t tt_memory_map_changes(void)
{
    static MemoryListener listener = { .name = "tt-changes", .commit = count_change };

    if (!listener.address_space) {
        memory_listener_register(&listener, &address_space_memory);
    }
    return changes;
}

void tt_memory_map_restore(const TtMapState *ms)
{
    tt_memory_show(ms->n_blocks);
    for (unsigned i = 0; i < N_SPACES; i++) {
        const GByteArray *want = ms->sections[i], *have = current_map[i];

        if (i >= n_spaces() || (!have && !(want && want->len)) ||
            (have && want && want->len == have->len &&
             !memcmp(want->data, have->data, have->len))) {
            continue;
        }
        set_map(i, want ? want->data : NULL, want ? want->len : 0);
    }
}

void tt_memory_map_free(TtMapState *ms)
{
    for (unsigned i = 0; i < N_SPACES; i++) {
        if (ms->sections[i]) {
            g_byte_array_unref(ms->sections[i]);
        }
    }
}
