/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Points from which a conversion that was broken off goes on: at a sync point, now and
 * then, the new log is sealed, and RAM and vCPU become a checkpoint of the new run, which
 * it keeps. RUN/point.new says which of them is the last one, and has what else the
 * pass knows: magic, the numbers of TtConvertPoint, le64 length and bytes of the CPUID
 * table and of the bitmap of page tables, tt_convert_sum() of all before it.
 *
 *   log.new    |=== sealed ===| what came after it is cut off
 *   pages.new, checkpoints.new: the page store
 *
 * What stands there is compared by its digests before the pass goes on. If anything is
 * wrong with it, it is deleted, and the pass begins anew.
 */
#include "qemu/osdep.h"
#include "convert/tt-convert-files.h"
#include "tt-convert-parts-int.h"
#include "accel-tt/tt-position.h"
#include "accel-tt/tt-vcpus.h"
#include "hw-tt/memory/tt-memory.h"
#include "io/tt-bytes.h"
#include "io/tt-io.h"
#include "log/tt-sched.h"
#include "pages/tt-pagestore.h"
#include "replay/tt-replay-log.h"
#include "run/tt-cpstate.h"
#include "session/tt-session.h"
#include "qapi/error.h"
#include "qemu-version.h"
#include "qemu/error-report.h"
#include "qemu/timer.h"
#include "qemu/units.h"

#define MAGIC "TTVMCNV\n"
#define N_NUMBERS (sizeof(TtConvertPoint) / sizeof(uint64_t))
#define HEAD (8 + 8 * N_NUMBERS)
#define BYTES_MAX (64 * MiB)
#define LOG_BYTES_MIN 64            /* its head */

static struct {
    TtPageStore *store;
    TtNodeId base;                  /* of RAM */
    int64_t last_ms;
    bool is_off;
    bool is_full;                   /* there was no room for the last one */
    bool goes_on;                   /* there is one to go on from: */
    TtConvertPoint from;
    GByteArray *more;               /* the two fields after its numbers */
} pt;

/* Another version of the program begins anew. */
uint64_t tt_convert_sum(const uint8_t *bytes, size_t len)
{
    static const char program[] = QEMU_FULL_VERSION "/" TT_TTVM_VERSION "/2";

    return XXH3_64bits_withSeed(bytes, len, XXH3_64bits(program, sizeof(program)));
}

/* The pass goes on without more points, and those made so far are of no use any more. */
static void give_up(const char *why)
{
    warn_report("tt: if the conversion is interrupted, the next one starts from the "
                "beginning: %s", why);
    pt.is_off = true;
    tt_pagestore_free(pt.store);
    pt.store = NULL;
    tt_convert_discard_points();
}

/* ---- the store ---- */

static TtStatus open_file(const char *name, bool is_new, TtIo **io, TtDiag *diag)
{
    g_autofree char *path = tt_convert_path(name);

    if (is_new) {
        unlink(path);
    }
    return is_new ? tt_io_posix_create(path, io, diag) :
        tt_io_posix_open_append(path, io, diag);
}

static TtStatus open_store(bool is_new, TtDiag *diag)
{
    TtPageStoreOptions opt = { .cache_bytes = 64 * MiB };
    TtStatus s = open_file(TT_CONVERT_PAGES, is_new, &opt.pages, diag);

    if (s != TT_OK) {
        return s;
    }
    memcpy(opt.uuid, tt_session.manifest.uuid, sizeof(opt.uuid));
    s = open_file(TT_CONVERT_CHECKPOINTS, is_new, &opt.checkpoints, diag);
    if (s != TT_OK) {
        tt_io_close(opt.pages);
        return s;
    }
    s = is_new ? tt_pagestore_create(&opt, &pt.store, diag) :
        tt_pagestore_open(&opt, &pt.store, diag);
    if (s != TT_OK) {
        pt.store = NULL;
    }
    return s;
}

/* ---- a point is made ---- */

static void put_field(GByteArray *to, const uint8_t *bytes, size_t len)
{
    uint8_t le[8];

    tt_put_le64(le, len);
    g_byte_array_append(to, le, sizeof(le));
    g_byte_array_append(to, bytes, len);
}

static TtStatus write_point(const TtConvertPoint *p, TtBytes cpuid, TtDiag *diag)
{
    g_autoptr(GByteArray) bytes = g_byte_array_new();
    g_autofree char *to = tt_convert_path(TT_CONVERT_POINT);
    g_autofree char *temporary = tt_convert_path(TT_CONVERT_POINT_PART);
    const uint64_t *numbers = (const uint64_t *)p;
    TtBytes tables = tt_convert_tables();
    TtIo *io;
    TtStatus s = open_file(TT_CONVERT_POINT_PART, true, &io, diag);
    uint8_t le[8];

    if (s != TT_OK) {
        return s;
    }
    g_byte_array_append(bytes, (const uint8_t *)MAGIC, 8);
    for (size_t i = 0; i < N_NUMBERS; i++) {
        tt_put_le64(le, numbers[i]);
        g_byte_array_append(bytes, le, sizeof(le));
    }
    put_field(bytes, cpuid.data, cpuid.len);
    put_field(bytes, tables.data, tables.len);
    tt_put_le64(le, tt_convert_sum(bytes->data, bytes->len));
    g_byte_array_append(bytes, le, sizeof(le));
    s = io->ops->append(io, bytes->data, bytes->len, diag);
    s = s == TT_OK ? io->ops->sync(io, diag) : s;
    tt_io_close(io);
    if (s == TT_OK && rename(temporary, to)) {
        s = tt_fail(diag, TT_ERR_IO, "'%s' cannot be renamed: %s", temporary,
                    strerror(errno));
    }
    return s;
}

/* All but RAM, as a recorder's checkpoint has it. */
static uint8_t *encode(CPUState *cpu, TtCpState *s, uint32_t *len)
{
    g_autoptr(GByteArray) regs = tt_vcpus_save();
    g_autoptr(GByteArray) blocks = tt_memory_blocks_save();
    TtMapState map;
    uint8_t *bytes;

    s->halted = cpu->halted;
    s->blocks = (TtBytes) { blocks->data, blocks->len };
    s->cpu = (TtBytes) { regs->data, regs->len };
    tt_memory_map_save(&map);
    s->n_blocks = map.n_blocks;
    for (unsigned i = 0; i < TT_CPSTATE_SPACES; i++) {
        if (map.sections[i]) {
            s->map[i] = (TtBytes) { map.sections[i]->data, map.sections[i]->len };
        }
    }
    bytes = tt_cpstate_encode(s, len);
    tt_memory_map_free(&map);
    return bytes;
}

uint8_t *tt_convert_state(CPUState *cpu, uint32_t *len)
{
    TtCpState s = { 0 };

    return encode(cpu, &s, len);
}

static TtStatus store(CPUState *cpu, TtConvertPoint *p, TtDiag *diag)
{
    g_autofree uint64_t *dirty = NULL;
    g_autofree uint8_t *blob = NULL;
    TtCheckpointMeta meta = { .host_ns = p->host_ns };
    TtCpState s = {
        .segment = p->place_segment, .output_hash = p->output_hash, .events = p->events,
    };
    TtNodeId id;
    uint32_t len;
    size_t n;

    meta.blob = blob = encode(cpu, &s, &len);
    meta.blob_bytes = len;
    dirty = tt_memory_collect_dirty(&n);
    if (tt_pagestore_add_checkpoint(pt.store, p->place_pos, pt.base, dirty, n,
                                    tt_memory_page, NULL, &meta, &id) != TT_OK) {
        return tt_fail(diag, TT_ERR_NOMEM, "not enough memory for a checkpoint");
    }
    p->node = pt.base = id;
    return tt_pagestore_flush(pt.store, diag);
}

/* If the disk is full, the points that are there stay, and later there may be room. TT_END:
 * it still is. */
static void cannot_store(TtStatus s, const TtDiag *diag)
{
    if (s != TT_ERR_NOSPACE && s != TT_END) {
        give_up(diag->text);
    } else if (!pt.is_full) {
        pt.is_full = true;
        warn_report("tt: until there is room, the conversion makes no points from which "
                    "it could continue: %s", diag->text);
    }
}

/* What waits in the store is written first, so it waits no longer than one point. */
static bool has_room(void)
{
    TtDiag diag;
    TtStatus s = pt.is_full && pt.store ? tt_pagestore_flush(pt.store, &diag) : TT_OK;

    if (s != TT_OK) {
        cannot_store(s, &diag);
    }
    return s == TT_OK;
}

TtPageStore *tt_convert_new_store(TtDiag *diag)
{
    TtPageStore *store = open_store(true, diag) == TT_OK ? pt.store : NULL;

    pt.store = NULL;
    return store;
}

bool tt_convert_point_is_due(int64_t interval_ms)
{
    return !pt.is_off && interval_ms &&
        qemu_clock_get_ms(QEMU_CLOCK_REALTIME) - pt.last_ms >= interval_ms;
}

void tt_convert_point_take(CPUState *cpu, TtConvertPoint *p, TtBytes cpuid)
{
    TtCursor at = tt_convert_cursor();
    TtStatus s = TT_OK;
    TtDiag diag;

    if (tt_convert_log_has_pictures()) {        /* they are described at the start only */
        give_up("the run has pictures of a virtio-gpu");
        return;
    }
    pt.last_ms = qemu_clock_get_ms(QEMU_CLOCK_REALTIME);
    if (!has_room()) {
        return;
    }
    s = pt.store ? TT_OK : open_store(true, &diag);
    if (s != TT_OK) {
        cannot_store(s, &diag);
        return;
    }
    p->exits_segment = at.segment;
    p->exits_index = at.index;
    p->output_hash = tt_now.output_hash;
    p->events = tt_session.events;
    p->cpu_digest = tt_vcpus_digest();
    p->ram_digest = tt_memory_digest();
    p->places = tt_convert_counts.places;
    p->candidates = tt_convert_counts.candidates;
    p->same_registers = tt_convert_counts.same_registers;
    tt_convert_log_seal(p);
    s = store(cpu, p, &diag);
    s = s == TT_OK ? write_point(p, cpuid, &diag) : s;
    if (s == TT_OK) {
        pt.is_full = false;
    } else {
        cannot_store(s, &diag);
    }
    pt.last_ms = qemu_clock_get_ms(QEMU_CLOCK_REALTIME);
}

/* ---- going on from one ---- */

static bool parse(const uint8_t *bytes, size_t len)
{
    uint64_t *numbers = (uint64_t *)&pt.from;

    if (len < HEAD + 24 || memcmp(bytes, MAGIC, 8) ||
        tt_get_le64(bytes + len - 8) != tt_convert_sum(bytes, len - 8)) {
        return false;
    }
    for (size_t i = 0; i < N_NUMBERS; i++) {
        numbers[i] = tt_get_le64(bytes + 8 + 8 * i);
    }
    pt.more = g_byte_array_new();
    g_byte_array_append(pt.more, bytes + HEAD, len - HEAD - 8);
    return pt.from.place_pos <= INT64_MAX && pt.from.place_segment <= TT_LOG_NUMBER_MAX &&
        pt.from.place_event <= TT_LOG_NUMBER_MAX && pt.from.log_bytes >= LOG_BYTES_MIN &&
        pt.from.exits_index <= UINT32_MAX;
}

static bool read_point(void)
{
    g_autofree char *path = tt_convert_path(TT_CONVERT_POINT);
    g_autofree char *bytes = NULL;
    gsize len;

    struct stat st;

    return lstat(path, &st) == 0 && S_ISREG(st.st_mode) && st.st_size <= BYTES_MAX &&
        g_file_get_contents(path, &bytes, &len, NULL) && parse((uint8_t *)bytes, len);
}

/* The process ended between the flush of a checkpoint and that of its point. */
static void forget_later_ones(void)
{
    size_t n = tt_pagestore_count(pt.store);
    g_autofree TtCheckpointInfo *infos = g_new0(TtCheckpointInfo, n + 1);

    n = tt_pagestore_list(pt.store, infos, n);
    for (size_t i = 0; i < n; i++) {
        if (infos[i].pos > pt.from.place_pos) {
            tt_pagestore_delete(pt.store, infos[i].id);
        }
    }
}

const TtConvertPoint *tt_convert_point_find(void)
{
    TtCheckpointInfo info;
    TtDiag diag;

    pt.last_ms = qemu_clock_get_ms(QEMU_CLOCK_REALTIME);
    pt.goes_on = read_point() && open_store(false, &diag) == TT_OK &&
        tt_pagestore_info(pt.store, pt.from.node, &info) &&
        info.pos == pt.from.place_pos && tt_convert_log_is_whole(&pt.from);
    if (pt.goes_on) {
        forget_later_ones();
    } else {
        tt_pagestore_free(pt.store);
        pt.store = NULL;
        tt_convert_discard_all();
    }
    return pt.goes_on ? &pt.from : NULL;
}

static bool take_field(TtBytes *rest, TtBytes *out)
{
    uint64_t len = rest->len >= 8 ? tt_get_le64(rest->data) : UINT64_MAX;

    if (len > rest->len - 8) {
        return false;
    }
    *out = (TtBytes) { rest->data + 8, len };
    *rest = (TtBytes) { rest->data + 8 + len, rest->len - 8 - len };
    return true;
}

/* The store may come from anybody. */
static void put_in_ram(void *opaque, uint64_t page, const void *bytes)
{
    bool *is_beyond = opaque;

    if (page < tt_memory_n_pages()) {
        tt_memory_put_page(NULL, page, bytes);
    } else {
        *is_beyond = true;
    }
}

/* Without @err, @diag says it already. False. */
static bool why_not(Error *err, TtDiag *diag)
{
    if (err) {
        tt_fail(diag, TT_ERR_FORMAT, "%s", error_get_pretty(err));
        error_free(err);
    }
    return false;
}

bool tt_convert_become(TtPageStore *store, uint32_t id, TtCursor *at, TtDiag *diag)
{
    g_autofree uint64_t *dirty = NULL;
    g_autofree void *blob = NULL;
    bool is_beyond = false;
    Error *err = NULL;
    TtMapState map;
    TtCpState s;
    size_t len, n;

    if (tt_pagestore_blob(store, id, &blob, &len, diag) != TT_OK ||
        tt_cpstate_decode((TtBytes) { blob, len }, &s, diag) != TT_OK ||
        !tt_memory_map_load(&map, &s, &err)) {
        return why_not(err, diag);
    }
    dirty = tt_memory_collect_dirty(&n);
    if (tt_pagestore_restore(store, id, 0, dirty, n, put_in_ram, &is_beyond, NULL) !=
        TT_OK || is_beyond) {
        tt_memory_map_free(&map);
        tt_fail(diag, TT_ERR_FORMAT, "its pages cannot be read, or are not of this run");
        return false;
    }
    tt_memory_map_restore(&map);
    tt_memory_map_free(&map);
    g_free(tt_memory_collect_dirty(&n));
    *at = (TtCursor) { s.segment, s.index };
    return tt_vcpus_load(s.cpu.data, s.cpu.len, s.halted, &err) || why_not(err, diag);
}

static bool restore(TtBytes *cpuid, TtDiag *diag)
{
    TtBytes rest = { pt.more->data, pt.more->len }, tables;
    TtCursor at;

    if (!take_field(&rest, cpuid) || !take_field(&rest, &tables) ||
        !tt_convert_become(pt.store, pt.from.node, &at, diag)) {
        return false;
    }
    pt.base = pt.from.node;
    tt_now.pos = pt.from.place_pos;
    tt_now.sync_next = tt_next_sync_point(tt_now.pos);
    tt_now.output_hash = pt.from.output_hash;
    tt_session.events = pt.from.events;
    tt_convert_counts = (TtConvertCounts) {
        pt.from.places, pt.from.candidates, pt.from.same_registers,
    };
    tt_convert_set_tables(tables);
    tt_vcpus_do_work();
    tt_vcpus_flush();
    return tt_vcpus_digest() == pt.from.cpu_digest &&
        tt_memory_digest() == pt.from.ram_digest &&
        tt_sched_seek(tt_replay_sched(), (TtCursor) {
            pt.from.exits_segment, pt.from.exits_index }, diag) == TT_OK;
}

/* The machine's state is half that of the point: a new process starts from the
 * beginning. */
TtBytes tt_convert_point_restore(void)
{
    TtBytes cpuid;
    TtDiag diag;

    if (!restore(&cpuid, &diag)) {
        error_report("tt: the files of an interrupted conversion are damaged: starting "
                     "from the beginning");
        tt_convert_discard_all();
        _exit(TT_CONVERT_AGAIN);
    }
    error_printf("tt: continuing an interrupted conversion at %.1f %%\n",
                 100.0 * pt.from.exits_pos / MAX(tt_replay_end(), 1));
    return cpuid;
}

/* ---- the end ---- */

bool tt_convert_points_close(Error **errp)
{
    TtDiag diag;
    TtStatus s = pt.store ? tt_pagestore_flush(pt.store, &diag) : TT_OK;

    if (pt.store && s == TT_OK) {       /* the recorder's own go when this is whole */
        s = tt_pagestore_sync(pt.store, &diag);
    }
    tt_pagestore_free(pt.store);
    pt.store = NULL;
    if (s == TT_ERR_NOSPACE || s == TT_END) {   /* the files hold what was flushed */
        if (!tt_convert_has_point()) {
            tt_convert_discard_points();
        }
    } else if (s != TT_OK) {
        error_setg(errp, "%s", diag.text);
        return false;
    }
    return true;
}
