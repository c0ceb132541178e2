/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A part of the pass, from one of the recorder's checkpoints to a later one, in a process
 * of its own. What it makes does not depend on what lies before: RAM and vCPU are the
 * recorded ones, TLBs are empty, and sync points count from there. Positions count from
 * its start; tt-convert-join.c puts the parts together.
 *
 *   RUN/part-FROM.new    its log
 *   RUN/part-FROM.done   it is whole: magic, numbers of TtConvertPart, then for each
 *                        checkpoint that it came to its three numbers, le64 length and
 *                        bytes of the state there; tt_convert_sum() of all before it
 */
#include "qemu/osdep.h"
#include "convert/tt-convert.h"
#include "convert/tt-convert-files.h"
#include "tt-convert-part-int.h"
#include "tt-convert-parts-int.h"
#include "accel-tt/tt-position.h"
#include "accel-tt/tt-vcpus.h"
#include "hw-tt/memory/tt-memory.h"
#include "io/tt-bytes.h"
#include "io/tt-io.h"
#include "log/tt-sched.h"
#include "replay/tt-replay-exact.h"
#include "replay/tt-replay-log.h"
#include "session/tt-session.h"
#include "qapi/error.h"
#include "qemu/error-report.h"
#include "qemu/units.h"

#define MAGIC "TTVMPRT\n"
#define HEAD (8 + sizeof(TtConvertPart))
#define BYTES_MAX (256 * MiB)

static struct {
    bool on;
    int64_t join_ms;                /* when the pass began */
    TtConvertPart part;             /* written as numbers, from the first on */
    GByteArray *passed;             /* checkpoints, as in the file */
} pp;

void tt_convert_part_option(const char *text)
{
    uint64_t from = 0, to = TT_CONVERT_END;

    if (sscanf(text, "join-%" PRId64, &pp.join_ms) == 1) {
        return;
    }
    if (sscanf(text, "%" PRIu64 "-%" PRIu64, &from, &to) < 1) {
        error_report("-tt: part takes FROM-TO or FROM-, not '%s'", text);
        exit(1);
    }
    pp.on = true;
    pp.part.from = from;
    pp.part.to = to;
    pp.passed = g_byte_array_new();
}

int64_t tt_convert_part_join(void)
{
    return pp.join_ms;
}

bool tt_convert_part_is_on(void)
{
    return pp.on;
}

uint64_t tt_convert_part_from(void)
{
    return pp.on ? pp.part.from : 0;
}

char *tt_convert_part_name(uint64_t from, bool is_done)
{
    return g_strdup_printf(TT_CONVERT_PART "%" PRIu64 ".%s", from,
                           is_done ? "done" : "new");
}

/* ---- at a checkpoint ---- */

static void put_number(GByteArray *to, uint64_t n)
{
    uint8_t le[8];

    tt_put_le64(le, n);
    g_byte_array_append(to, le, sizeof(le));
}

/* RAM is the recorded one. The next event is the state of the vCPU: it empties the TLB. */
bool tt_convert_part_passes(CPUState *cpu, uint64_t index)
{
    g_autofree uint8_t *state = NULL;
    TtManifest *m = &tt_session.manifest;
    uint32_t len;

    if (!pp.on) {
        return false;
    }
    state = tt_convert_state(cpu, &len);
    put_number(pp.passed, index);
    put_number(pp.passed, tt_now.pos);
    put_number(pp.passed, tt_convert_log_cut());
    put_number(pp.passed, len);
    g_byte_array_append(pp.passed, state, len);
    pp.part.n_passed++;
    if (index >= pp.part.to) {
        pp.part.to = index;
        return true;
    }
    m->sync_starts = g_renew(uint64_t, m->sync_starts, m->n_sync_starts + 1);
    m->sync_starts[m->n_sync_starts++] = tt_now.pos;
    tt_now.sync_next = tt_next_sync_point(tt_now.pos);
    tt_vcpus_flush();
    return false;
}

/* ---- its file ---- */

static bool write_done(TtDiag *diag)
{
    g_autoptr(GByteArray) bytes = g_byte_array_new();
    g_autofree char *name = tt_convert_part_name(pp.part.from, true);
    g_autofree char *unfinished = g_strconcat(name, "-part", NULL);
    g_autofree char *to = tt_convert_path(name);
    g_autofree char *temporary = tt_convert_path(unfinished);
    const uint64_t *numbers = (const uint64_t *)&pp.part;
    TtIo *io;
    bool ok;

    unlink(temporary);
    if (tt_io_posix_create(temporary, &io, diag) != TT_OK) {
        return false;
    }
    g_byte_array_append(bytes, (const uint8_t *)MAGIC, 8);
    for (size_t i = 0; i < sizeof(pp.part) / 8; i++) {
        put_number(bytes, numbers[i]);
    }
    g_byte_array_append(bytes, pp.passed->data, pp.passed->len);
    put_number(bytes, tt_convert_sum(bytes->data, bytes->len));
    ok = io->ops->append(io, bytes->data, bytes->len, diag) == TT_OK &&
        io->ops->sync(io, diag) == TT_OK;
    tt_io_close(io);
    if (ok && rename(temporary, to)) {
        tt_fail(diag, TT_ERR_IO, "'%s' cannot be renamed: %s", temporary,
                strerror(errno));
        ok = false;
    }
    return ok;
}

bool tt_convert_part_finish(uint64_t log_bytes, bool is_end, bool is_clean, TtDiag *diag)
{
    if (is_end) {
        pp.part.to = TT_CONVERT_END;
    }
    pp.part.is_clean = is_clean;
    pp.part.log_bytes = log_bytes;
    pp.part.positions = tt_now.pos;
    pp.part.places = tt_convert_counts.places;
    pp.part.candidates = tt_convert_counts.candidates;
    pp.part.same_registers = tt_convert_counts.same_registers;
    pp.part.compared = tt_convert_counts.compared;
    return write_done(diag);
}

static uint64_t number_at(const uint8_t *bytes, size_t i)
{
    return tt_get_le64(bytes + 8 * i);
}

/* The checkpoints after the head of @done. */
static bool parse_passed(TtConvertDone *done)
{
    const uint8_t *at = (uint8_t *)done->bytes + HEAD;
    size_t rest = done->len - HEAD - 8;

    for (uint64_t i = 0; i < done->part.n_passed; i++) {
        TtConvertPassed p;

        if (rest < 32 || number_at(at, 3) > rest - 32) {
            return false;
        }
        p = (TtConvertPassed) {
            .index = number_at(at, 0), .pos = number_at(at, 1),
            .segment = number_at(at, 2),
            .state = { at + 32, number_at(at, 3) },
        };
        g_array_append_val(done->passed, p);
        rest -= 32 + p.state.len;
        at += 32 + p.state.len;
    }
    return rest == 0;
}

bool tt_convert_part_load(const char *dir, uint64_t from, TtConvertDone *done)
{
    g_autofree char *name = tt_convert_part_name(from, true);
    g_autofree char *path = g_build_filename(dir, name, NULL);
    uint64_t *numbers = (uint64_t *)&done->part;
    struct stat st;

    *done = (TtConvertDone) {
        .passed = g_array_new(false, false, sizeof(TtConvertPassed)),
    };
    if (lstat(path, &st) || !S_ISREG(st.st_mode) || st.st_size > BYTES_MAX ||
        !g_file_get_contents(path, &done->bytes, &done->len, NULL) ||
        done->len < HEAD + 8 || memcmp(done->bytes, MAGIC, 8) ||
        tt_get_le64((uint8_t *)done->bytes + done->len - 8) !=
        tt_convert_sum((uint8_t *)done->bytes, done->len - 8)) {
        tt_convert_done_cleanup(done);
        return false;
    }
    for (size_t i = 0; i < sizeof(done->part) / 8; i++) {
        numbers[i] = number_at((uint8_t *)done->bytes + 8, i);
    }
    if (done->part.from != from || done->part.to <= from || !parse_passed(done)) {
        tt_convert_done_cleanup(done);
        return false;
    }
    return true;
}

void tt_convert_done_cleanup(TtConvertDone *done)
{
    g_free(done->bytes);
    g_array_unref(done->passed);
    *done = (TtConvertDone) { 0 };
}
