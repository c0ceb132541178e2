/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What gdb can ask beyond its protocol: the register $tt_position, and packets
 * for scripts/tt-gdb.py (docs/reference/gdb-packets.rst).
 *
 * A packet that moves the VM only says what is wanted; the resumption that
 * follows carries it out (tt-gdb.c). So gdb forgets its caches afterwards, as
 * for every stop, and its Ctrl-C works meanwhile. "monitor tt goto" has
 * neither.
 */
#include "qemu/osdep.h"
#include "accel-tt/tt-position.h"
#include "control/tt-mark.h"
#include "io/tt-base.h"
#include "replay/tt-replay-log.h"
#include "session/tt-session.h"
#include "travel/tt-travel.h"
#include "tt-gdb-int.h"
#include "tt/hooks.h"
#include "qapi/error.h"
#include "hw/core/cpu.h"
#include "qemu/cutils.h"
#include "exec/gdbstub.h"
#include "gdbstub/commands.h"

#define ADDRESSES_MAX 16
#define HITS_MAX 1000000
#define ANSWER_BYTES 2000       /* QEMU's packets have twice as much */

static struct {
    uint64_t addresses[ADDRESSES_MAX];
    GPtrArray *bps;             /* of CPUBreakpoint, address by address */
    unsigned n_addresses;
    uint64_t limit;
    bool active;
    TtGdbWho who;               /* whose */
    GArray *found;              /* of Hit */
} hits;

typedef struct Hit {
    uint64_t pos, pc;
} Hit;

static void put_error(Error *err)
{
    g_autofree char *text = g_strdup_printf("E.%s", error_get_pretty(err));

    gdb_put_packet(text);
    error_free(err);
}

/* ---- $tt_position ---- */

static const char position_xml[] =
    "<?xml version=\"1.0\"?>"
    "<!DOCTYPE feature SYSTEM \"gdb-target.dtd\">"
    "<feature name=\"org.ttvm.position\">"
    "<reg name=\"tt_position\" bitsize=\"64\" type=\"uint64\""
    " save-restore=\"no\"/>"
    "</feature>";

static const char *const position_regs[] = { "tt_position" };

static const GDBFeature position_feature = {
    .xmlname = "tt-position.xml",
    .xml = position_xml,
    .name = "org.ttvm.position",
    .regs = position_regs,
    .num_regs = ARRAY_SIZE(position_regs),
};

static int read_position(CPUState *cpu, GByteArray *buf, int reg)
{
    uint8_t bytes[8];

    tt_put_le64(bytes, tt_position());
    g_byte_array_append(buf, bytes, sizeof(bytes));
    return sizeof(bytes);
}

/* A recording's position cannot be set; gdb in a replay is refused before. */
static int write_position(CPUState *cpu, uint8_t *buf, int reg)
{
    return 8;
}

/* ---- qtt.goto:PLACE ---- */

static bool parse_delta(const char *text, TtGdbJob *job, uint64_t *place)
{
    uint64_t here = tt_position(), n;

    if (!g_ascii_isdigit(text[1]) || qemu_strtou64(text + 1, NULL, 0, &n)) {
        return false;
    }
    n = MIN(n, *text == '-' ? here : UINT64_MAX - here);
    if (*text == '-' && n) {
        *job = TT_GDB_BACK;
        *place = n;
    } else {
        *place = here + n;
    }
    return true;
}

static bool parse_place(const char *text, TtGdbJob *job, uint64_t *target,
                        Error **errp)
{
    *job = TT_GDB_GOTO;
    if (*text == '@') {
        return tt_mark_find(text + 1, target, errp);
    }
    if (!strcmp(text, "start") || !strcmp(text, "end")) {
        *target = *text == 's' ? tt_replay_first() : tt_replay_end();
        return true;
    }
    if (*text == '+' || *text == '-' ? parse_delta(text, job, target) :
        g_ascii_isdigit(*text) && !qemu_strtou64(text, NULL, 0, target)) {
        return true;
    }
    error_setg(errp, "'%s' is no position: give a number, +N, -N, start, end "
               "or @MARK", text);
    return false;
}

static void handle_goto(GArray *params, void *user_ctx)
{
    const char *place = params->len ? gdb_get_cmd_param(params, 0)->data : "";
    TtGdbJob job;
    uint64_t target;
    Error *err = NULL;

    if (!tt_travel_is_possible(&err) ||
        !parse_place(place, &job, &target, &err)) {
        put_error(err);
        return;
    }
    tt_gdb_post_job(job, target);
    gdb_put_packet("OK");
}

/* ---- qtt.hits:LIMIT,FROM,TO,ADDRESS[,ADDRESS...] ---- */

bool tt_gdb_counts_hits(uint64_t pc)
{
    for (unsigned i = 0; hits.active && i < hits.n_addresses; i++) {
        if (hits.addresses[i] == pc) {
            return true;
        }
    }
    return false;
}

bool tt_gdb_hit_counts(CPUState *cpu)
{
    return tt_gdb_is_turn_of(cpu, &hits.who);
}

static uint64_t from, to;

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

static void handle_hits(GArray *params, void *user_ctx)
{
    Error *err = NULL;

    if (!tt_travel_is_possible(&err)) {
        put_error(err);
    } else if (!params->len ||
               !parse_hits(gdb_get_cmd_param(params, 0)->data)) {
        gdb_put_packet("E.qtt.hits takes LIMIT,FROM,TO and 1 to 16 addresses, "
                       "in hex");
    } else {
        tt_gdb_post_job(TT_GDB_HITS, 0);
        gdb_put_packet("OK");
    }
}

/* qtt.hits-in:KIND,VALUE,VALUE2: the next search is for those of one process. */
static void handle_hits_in(GArray *params, void *user_ctx)
{
    uint64_t v[3];

    if (!params->len ||
        tt_gdb_parse_list(gdb_get_cmd_param(params, 0)->data, v, 3) != 3 ||
        !tt_gdb_parse_who(v, &hits.who)) {
        hits.who.kind = 0;
        gdb_put_packet("E.qtt.hits-in takes KIND,VALUE,VALUE2 in hex, KIND "
                       "being the letter r, p or n");
    } else {
        tt_gdb_has_conditions = true;       /* hits are looked at */
        gdb_put_packet("OK");
    }
}

static bool note_hit(void *opaque, uint64_t pos, uint64_t pc)
{
    Hit hit = { pos, pc };
    const Hit *last = hits.found->len ?
        &g_array_index(hits.found, Hit, hits.found->len - 1) : NULL;

    if (tt_gdb_counts_hits(pc) && hits.found->len < hits.limit &&
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

void tt_gdb_end_hits(void)
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
    hits.who.kind = 0;
}

/* The breakpoints first: what may be left out depends on them. */
bool tt_gdb_begin_hits(TtTravelDone *done, Error **errp)
{
    g_array_set_size(hits.found, 0);
    hits.active = true;
    for (unsigned i = 0; i < hits.n_addresses; i++) {
        insert_on_all(hits.addresses[i]);
    }
    if (!tt_travel_survey(from, to, note_hit, done, NULL, errp)) {
        tt_gdb_end_hits();
        return false;
    }
    return true;
}

/* qtt.found:INDEX: POSITION.PC of those from INDEX on, as many as fit; behind
 * an l there are no more. */
static void handle_found(GArray *params, void *user_ctx)
{
    uint64_t i = params->len ? gdb_get_cmd_param(params, 0)->val_ull : 0;
    g_autoptr(GString) answer = g_string_new("m");

    for (; i < hits.found->len && answer->len < ANSWER_BYTES; i++) {
        Hit *h = &g_array_index(hits.found, Hit, i);

        g_string_append_printf(answer, "%s%" PRIx64 ".%" PRIx64,
                               answer->len > 1 ? "," : "", h->pos, h->pc);
    }
    if (i >= hits.found->len) {
        answer->str[0] = 'l';
    }
    gdb_put_packet(answer->str);
}

/* ---- qtt.marks:INDEX ---- */

static void note_mark(void *opaque, const char *name, uint64_t pos)
{
    if (*name && strspn(name, G_CSET_a_2_z G_CSET_A_2_Z G_CSET_DIGITS
                        "-_.") == strlen(name)) {
        g_ptr_array_add(opaque, g_strdup_printf("%" PRIx64 ".%s", pos, name));
    }
}

/* POSITION.NAME of those from INDEX on; l and m as above. */
static void handle_marks(GArray *params, void *user_ctx)
{
    uint64_t i = params->len ? gdb_get_cmd_param(params, 0)->val_ull : 0;
    g_autoptr(GPtrArray) marks = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GString) answer = g_string_new("m");

    if (!tt_replaying()) {
        gdb_put_packet("E.only a replay lists its marks");
        return;
    }
    tt_mark_each(note_mark, marks);
    for (; i < marks->len && answer->len < ANSWER_BYTES; i++) {
        g_string_append_printf(answer, "%s%s", answer->len > 1 ? "," : "",
                               (char *)g_ptr_array_index(marks, i));
    }
    if (i >= marks->len) {
        answer->str[0] = 'l';
    }
    gdb_put_packet(answer->str);
}

/* ---- qtt.when ---- */

/* POSITION,END,HOW: HOW is how the last job ended. */
static void handle_when(GArray *params, void *user_ctx)
{
    g_autofree char *answer =
        g_strdup_printf("%" PRIx64 ",%" PRIx64 ",%s", tt_position(),
                        tt_replaying() ? tt_replay_end() : tt_position(),
                        tt_stop_name(tt_gdb_job_reason()));

    gdb_put_packet(answer);
}

static const GdbCmdParseEntry queries[] = {
    { .handler = handle_goto, .cmd = "tt.goto:", .cmd_startswith = true,
      .schema = "s0" },
    { .handler = handle_hits, .cmd = "tt.hits:", .cmd_startswith = true,
      .schema = "s0" },
    { .handler = handle_hits_in, .cmd = "tt.hits-in:", .cmd_startswith = true,
      .schema = "s0" },
    { .handler = handle_found, .cmd = "tt.found:", .cmd_startswith = true,
      .schema = "L0" },
    { .handler = handle_marks, .cmd = "tt.marks:", .cmd_startswith = true,
      .schema = "L0" },
    { .handler = handle_when, .cmd = "tt.when" },
};

void tt_gdb_init_queries(void)
{
    g_autoptr(GPtrArray) table = g_ptr_array_new();
    CPUState *cpu;

    for (size_t i = 0; i < ARRAY_SIZE(queries); i++) {
        g_ptr_array_add(table, (gpointer)&queries[i]);
    }
    gdb_extend_query_table(table);
    CPU_FOREACH(cpu) {
        gdb_register_coprocessor(cpu, read_position, write_position,
                                 &position_feature, 0);
    }
    hits.bps = g_ptr_array_new();
    hits.found = g_array_new(false, false, sizeof(Hit));
}
