/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The search for all hits of some addresses: qtt.hits, qtt.hits-in, qtt.found
 * (docs/reference/gdb.rst, Packets).
 */
#include "qemu/osdep.h"
#include "travel/tt-travel.h"
#include "tt-gdb-cond-int.h"
#include "tt-gdb-hits-int.h"
#include "tt-gdb-job-int.h"
#include "tt-gdb-packets-int.h"
#include "tt-gdb-process-int.h"
#include "tt/hooks.h"
#include "qapi/error.h"
#include "hw/core/cpu.h"
#include "qemu/cutils.h"
#include "exec/gdbstub.h"
#include "gdbstub/commands.h"

#define ADDRESSES_MAX 16
#define HITS_MAX 1000000

static struct {
    uint64_t addresses[ADDRESSES_MAX];
    GPtrArray *bps;             /* of CPUBreakpoint, address by address */
    unsigned n_addresses;
    uint64_t limit;
    bool active;
    TtGdbWho who, next;         /* whose; and those of the next search */
    GArray *found;              /* of Hit */
} hits;

typedef struct Hit {
    uint64_t pos, pc;
} Hit;

/* ---- qtt.hits:LIMIT,FROM,TO,ADDRESS[,ADDRESS...] ---- */

static bool counts_hits(uint64_t pc)
{
    for (unsigned i = 0; hits.active && i < hits.n_addresses; i++) {
        if (hits.addresses[i] == pc) {
            return true;
        }
    }
    return false;
}

/* Nobody else asks for breakpoints meanwhile. */
static int look_at_hit(CPUState *cpu, uint64_t pc)
{
    return !counts_hits(pc) ? -1 : tt_gdb_is_turn_of(cpu, &hits.who);
}

static uint64_t from, to;

static bool note_hit(void *opaque, uint64_t pos, uint64_t pc)
{
    Hit hit = { pos, pc };
    const Hit *last = hits.found->len ?
        &g_array_index(hits.found, Hit, hits.found->len - 1) : NULL;

    if (counts_hits(pc) && hits.found->len < hits.limit &&
        (!last || pos > last->pos)) {
        g_array_append_val(hits.found, hit);
    }
    return hits.found->len < hits.limit;
}

static void insert_on_all(uint64_t address)
{
    CPUState *cpu;

    CPU_FOREACH(cpu) {
        CPUBreakpoint *bp;

        cpu_breakpoint_insert(cpu, address, BP_GDB, &bp);
        g_ptr_array_add(hits.bps, bp);
    }
}

static void end_hits(void)
{
    guint i = 0;
    CPUState *cpu;

    while (i < hits.bps->len) {
        CPU_FOREACH(cpu) {
            cpu_breakpoint_remove_by_ref(cpu, g_ptr_array_index(hits.bps, i++));
        }
    }
    g_ptr_array_set_size(hits.bps, 0);
    hits.active = false;
}

/* The breakpoints first: what may be left out depends on them. */
static bool begin_hits(TtTravelDone *done, Error **errp)
{
    g_array_set_size(hits.found, 0);
    hits.active = true;
    for (unsigned i = 0; i < hits.n_addresses; i++) {
        insert_on_all(hits.addresses[i]);
    }
    if (!tt_travel_survey(from, to, note_hit, done, NULL, errp)) {
        end_hits();
        return false;
    }
    return true;
}

static bool parse_hits(const char *text)
{
    uint64_t head[3];

    for (unsigned i = 0; i < 3; i++, text++) {
        if (qemu_strtou64(text, &text, 16, &head[i]) || *text != ',') {
            return false;
        }
    }
    hits.limit = MIN(head[0], HITS_MAX);
    from = head[1];
    to = head[2];
    for (hits.n_addresses = 0; hits.n_addresses < ADDRESSES_MAX; text++) {
        if (qemu_strtou64(text, &text, 16,
                          &hits.addresses[hits.n_addresses++])) {
            return false;
        }
        if (*text != ',') {
            return !*text;
        }
    }
    return false;
}

void tt_gdb_hits_forget(void)
{
    hits.next.kind = 0;
}

static void handle_hits(GArray *params, void *user_ctx)
{
    TtGdbWho who = hits.next;
    Error *err = NULL;

    tt_gdb_hits_forget();
    if (!tt_travel_is_possible(&err)) {
        tt_gdb_put_error(err);
    } else if (!params->len ||
               !parse_hits(gdb_get_cmd_param(params, 0)->data)) {
        gdb_put_packet("E.qtt.hits takes LIMIT,FROM,TO and 1 to 16 addresses, "
                       "in hex");
    } else {
        hits.who = who;
        tt_gdb_post_job(begin_hits);
        gdb_put_packet("OK");
    }
}

/* qtt.hits-in:KIND,VALUE,VALUE2: the very next search is for those of one process. */
static void handle_hits_in(GArray *params, void *user_ctx)
{
    uint64_t v[3];

    if (!params->len ||
        tt_gdb_parse_list(gdb_get_cmd_param(params, 0)->data, v, 3) != 3 ||
        !tt_gdb_parse_who(v, &hits.next)) {
        tt_gdb_hits_forget();
        gdb_put_packet("E.qtt.hits-in takes KIND,VALUE,VALUE2 in hex; KIND is the letter "
                       "r, p or n");
    } else {
        tt_gdb_has_conditions = true;       /* hits are looked at */
        gdb_put_packet("OK");
    }
}

/* qtt.found:INDEX: POSITION.PC of those from INDEX on, as many as fit; after
 * an l there are no more. */
static void handle_found(GArray *params, void *user_ctx)
{
    uint64_t i = params->len ? gdb_get_cmd_param(params, 0)->val_ull : 0;
    g_autoptr(GString) answer = g_string_new("m");

    for (; i < hits.found->len && answer->len < TT_GDB_ANSWER_BYTES; i++) {
        Hit *h = &g_array_index(hits.found, Hit, i);

        g_string_append_printf(answer, "%s%" PRIx64 ".%" PRIx64,
                               answer->len > 1 ? "," : "", h->pos, h->pc);
    }
    if (i >= hits.found->len) {
        answer->str[0] = 'l';
    }
    gdb_put_packet(answer->str);
}

static const GdbCmdParseEntry queries[] = {
    { .handler = handle_hits, .cmd = "tt.hits:", .cmd_startswith = true,
      .schema = "s0" },
    { .handler = handle_hits_in, .cmd = "tt.hits-in:", .cmd_startswith = true,
      .schema = "s0" },
    { .handler = handle_found, .cmd = "tt.found:", .cmd_startswith = true,
      .schema = "L0" },
};

void tt_gdb_init_hits(void)
{
    tt_gdb_add_queries(queries, ARRAY_SIZE(queries));
    tt_gdb_look_first(look_at_hit);
    tt_gdb_on_job_end(end_hits);
    hits.bps = g_ptr_array_new();
    hits.found = g_array_new(false, false, sizeof(Hit));
}
