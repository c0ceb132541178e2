/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Makes a hostile run of a good one: from its last checkpoint on, positions are
 * larger. All checksums are right.
 *
 *   tt-forge-positions RUN NEW-LOG NEW-CHECKPOINTS SHIFT
 */
#include "log/tt-log.h"
#include "run/tt-manifest.h"
#include "io/tt-bytes.h"

#include <glib.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HEAD = 88, AT_POSITION = 32, AT_SUM = 80 };  /* page-store-format.rst */

static void check(TtStatus st, const TtDiag *diag)
{
    if (st < 0) {
        fprintf(stderr, "tt-forge-positions: %s\n", diag->text);
        exit(1);
    }
}

/* The journal again; the position that its last checkpoint had. */
static uint64_t shift_last(const char *from, const char *to, uint64_t seed,
                           uint64_t shift)
{
    g_autofree char *bytes = NULL;
    uint8_t *last = NULL;
    uint64_t pos = 0;
    gsize len;

    if (!g_file_get_contents(from, &bytes, &len, NULL)) {
        exit(1);
    }
    for (gsize at = 0; at + HEAD <= len; at++) {
        uint8_t *p = (uint8_t *)bytes + at;

        if (!memcmp(p, "TTVMREC\n", 8) && tt_get_le64(p + AT_POSITION) > pos) {
            last = p;
            pos = tt_get_le64(p + AT_POSITION);
        }
    }
    if (!last) {
        exit(1);
    }
    tt_put_le64(last + AT_POSITION, pos + shift);
    tt_put_le64(last + AT_SUM, tt_header_sum(last, HEAD, AT_SUM, seed));
    if (!g_file_set_contents(to, bytes, len, NULL)) {
        exit(1);
    }
    return pos;
}

/* The state of a vCPU, after a checkpoint that a user added, has its position. */
static bool is_behind(uint64_t pos, uint64_t first, uint64_t last)
{
    return pos > last || first >= last;
}

static void shift_log(TtLogReader *in, TtIo *to, uint64_t last, uint64_t shift)
{
    TtLogEncoder *encoder = tt_log_encoder_new();
    TtSegBuf *sb = tt_segbuf_new();
    TtLogWriter *out;
    TtDiag diag;

    check(tt_log_writer_new(to, tt_log_reader_uuid(in), &out, &diag), &diag);
    for (uint64_t i = 0; i < tt_log_reader_end(in); i++) {
        TtSegment *s;
        uint64_t first;

        check(tt_log_reader_load(in, i, &s, &diag), &diag);
        first = s->info.first_pos;
        tt_log_encoder_begin(encoder, sb, first + (first >= last ? shift : 0),
                             s->info.host_ns);
        for (uint32_t k = 0; k < s->n_events; k++) {
            TtEvent ev = s->events[k];

            ev.pos += is_behind(ev.pos, first, last) ? shift : 0;
            tt_log_encoder_put(encoder, &ev);
        }
        tt_log_encoder_end(encoder, s->info.last);
        check(tt_log_writer_seal(out, sb, &diag), &diag);
        tt_segment_unref(s);
    }
    tt_log_writer_free(out);
    tt_log_encoder_free(encoder);
    tt_segbuf_free(sb);
}

int main(int argc, char **argv)
{
    g_autofree char *manifest = NULL, *points = NULL, *log = NULL;
    uint64_t shift, last;
    TtLogReader *in;
    TtIo *from, *to;
    TtManifest m;
    TtDiag diag;

    if (argc != 5) {
        fprintf(stderr, "usage: tt-forge-positions RUN NEW-LOG NEW-CHECKPOINTS "
                "SHIFT\n");
        return 2;
    }
    shift = g_ascii_strtoull(argv[4], NULL, 0);
    manifest = g_build_filename(argv[1], "manifest", NULL);
    points = g_build_filename(argv[1], "checkpoints", NULL);
    log = g_build_filename(argv[1], "log", NULL);
    check(tt_manifest_load(manifest, &m, &diag), &diag);
    last = shift_last(points, argv[3], tt_get_le64(m.uuid), shift);
    check(tt_io_posix_open(log, &from, &diag), &diag);
    check(tt_log_reader_open(from, &in, &diag), &diag);
    check(tt_io_posix_create(argv[2], &to, &diag), &diag);
    shift_log(in, to, last, shift);
    tt_log_reader_free(in);
    tt_manifest_cleanup(&m);
    printf("%" PRIu64 "\n", last + shift);
    return 0;
}
