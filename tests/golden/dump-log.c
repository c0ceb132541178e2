/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Prints a log through the reader, in the form of scripts/tt-log-dump.py; or
 * writes a random log for both to read.
 *
 *   dump-log FILE
 *   dump-log --random SEED FILE
 */
#include "../unit/tt-log-util.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static const char *class_name(TtStatus status)
{
    switch (status) {
    case TT_ERR_FORMAT:
        return "format";
    case TT_ERR_VERSION:
        return "version";
    case TT_ERR_LIMIT:
        return "limit";
    default:
        return tt_status_name(status);
    }
}

static int refuse(TtStatus status, const TtDiag *diag)
{
    fflush(stdout);
    fprintf(stderr, "%s: %s\n", class_name(status), diag->text);
    return 1;
}

static void print_event(const TtEvent *ev)
{
    printf("event %u nested=%d size=%u cpu=%u aux=%" PRIu32 " pos=%" PRIu64
           " addr=%" PRIu64 " val=%" PRIu64 " data=", ev->kind, ev->nested,
           ev->size, ev->cpu, ev->aux, ev->pos, ev->addr, ev->val);
    for (uint32_t i = 0; i < ev->len; i++) {
        printf("%02x", ev->data[i]);
    }
    puts(ev->len ? "" : "-");
}

static int dump_segment(TtLogReader *r, uint64_t index)
{
    const TtSegInfo *i = tt_log_reader_info(r, index);
    TtSegment *seg;
    TtDiag diag;

    printf("segment %" PRIu64 " first_event=%" PRIu64 " first_pos=%" PRIu64
           " end_pos=%" PRIu64 " host_ns=%" PRIu64 " events=%" PRIu32
           " last=%d\n", i->seq, i->first_event, i->first_pos, i->end_pos,
           i->host_ns, i->n_events, i->last);
    TtStatus status = tt_log_reader_load(r, index, &seg, &diag);
    if (status != TT_OK) {
        return refuse(status, &diag);
    }
    for (uint32_t k = 0; k < seg->n_events; k++) {
        print_event(&seg->events[k]);
    }
    tt_segment_unref(seg);
    return 0;
}

static int dump(const char *path)
{
    TtLogReader *r;
    TtDiag diag;
    TtIo *io;
    int result = 0;
    TtStatus status = tt_io_posix_open(path, &io, &diag);

    if (status == TT_OK) {
        status = tt_log_reader_open(io, &r, &diag);
    }
    if (status < 0) {
        return refuse(status, &diag);
    }
    printf("log uuid=");
    for (unsigned i = 0; i < 16; i++) {
        printf("%02x", tt_log_reader_uuid(r)[i]);
    }
    printf("\n");
    for (uint64_t i = tt_log_reader_first(r);
         i < tt_log_reader_end(r) && !result; i++) {
        result = dump_segment(r, i);
    }
    if (!result) {
        printf("end %s\n", tt_log_reader_is_torn(r) ? "torn" : "clean");
    }
    tt_log_reader_free(r);
    return result;
}

static int write_random(uint32_t seed, const char *path)
{
    LogModel *m = log_model_new(seed);
    unsigned n_segments = g_rand_int_range(m->rand, 0, 5);

    for (unsigned s = 0; s < n_segments; s++) {
        unsigned n = g_rand_int_range(m->rand, 0, seed % 4 ? 30 : 2000);
        for (unsigned i = 0; i < n; i++) {
            TtEvent ev = log_model_random_event(m, seed % 5 ? 40 : 3000);
            log_model_add(m, &ev);
        }
        log_model_cut(m);
    }
    g_autoptr(GByteArray) bytes = log_model_write(m, seed % 3);
    log_model_free(m);
    return g_file_set_contents(path, (char *)bytes->data, bytes->len, NULL)
           ? 0 : 1;
}

int main(int argc, char **argv)
{
    if (argc == 4 && strcmp(argv[1], "--random") == 0) {
        return write_random(atoi(argv[2]), argv[3]);
    }
    if (argc != 2) {
        fprintf(stderr, "usage: dump-log FILE | --random SEED FILE\n");
        return 2;
    }
    return dump(argv[1]);
}
