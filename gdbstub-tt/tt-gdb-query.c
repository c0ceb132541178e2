/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Queries of gdb beyond its protocol: the register $tt_position, and packets for
 * scripts/tt-gdb.py (docs/reference/gdb.rst, Packets).
 *
 * A packet that moves the VM only says what is wanted; the resumption that
 * follows carries it out (tt-gdb.c). So gdb forgets its caches afterwards, as
 * for every stop, and its Ctrl-C works meanwhile. "monitor tt goto" has
 * neither.
 */
#include "qemu/osdep.h"
#include "accel-tt/tt-position.h"
#include "accel-tt/tt-vcpus.h"
#include "control/tt-mark.h"
#include "control/tt-values.h"
#include "io/tt-base.h"
#include "replay/tt-replay-log.h"
#include "session/tt-session.h"
#include "travel/tt-travel-ring.h"
#include "travel/tt-travel.h"
#include "tt-gdb-job-int.h"
#include "tt-gdb-packets-int.h"
#include "tt-gdb-query-int.h"
#include "tt/hooks.h"
#include "qapi/error.h"
#include "hw/core/cpu.h"
#include "qemu/cutils.h"
#include "exec/gdbstub.h"
#include "gdbstub/commands.h"

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

static uint64_t place;          /* where a job leads, or back by so many */

static bool begin_goto(TtTravelDone *done, Error **errp)
{
    return tt_travel_goto(place, done, NULL, errp);
}

/* A monitor may have moved the VM since gdb asked. */
static bool begin_back(TtTravelDone *done, Error **errp)
{
    uint64_t here = tt_position();

    return here ? tt_travel_back(here, MIN(place, here), done, NULL, errp) :
        tt_travel_goto(here, done, NULL, errp);
}

/* By @n positions, as @sign says. */
static bool plan_delta(char sign, uint64_t n, TtGdbBegin **job, uint64_t *target,
                       Error **errp)
{
    uint64_t here = tt_position(), first = tt_replay_first(), end = tt_replay_end();

    if (sign == '-' && n) {
        *job = begin_back;
        *target = n;
        return tt_place_may_be_back(n, here, first, errp);
    }
    *target = here + MIN(n, UINT64_MAX - here);
    return tt_place_is_inside(*target, first, end, errp);
}

static bool parse_place(const char *text, TtGdbBegin **job, uint64_t *target,
                        Error **errp)
{
    bool has_sign = *text == '+' || *text == '-';
    uint64_t n;

    *job = begin_goto;
    if (!strcmp(text, "start") || !strcmp(text, "end")) {
        *target = *text == 's' ? tt_replay_first() : tt_replay_end();
        return true;
    }
    if (*text == '@') {
        return tt_mark_find(text + 1, target, errp) &&
            tt_place_is_inside(*target, tt_replay_first(), tt_replay_end(), errp);
    }
    if (!g_ascii_isdigit(text[has_sign]) || qemu_strtou64(text + has_sign, NULL, 0, &n)) {
        error_setg(errp, "'%s' is not a position: give a number, +N, -N, start, end "
                   "or @MARK", text);
        return false;
    }
    if (has_sign) {
        return plan_delta(*text, n, job, target, errp);
    }
    *target = n;
    return tt_place_is_inside(n, tt_replay_first(), tt_replay_end(), errp);
}

static void handle_goto(GArray *params, void *user_ctx)
{
    const char *text = params->len ? gdb_get_cmd_param(params, 0)->data : "";
    TtGdbBegin *job;
    uint64_t target;
    Error *err = NULL;

    if (!tt_travel_is_possible(&err) ||
        !parse_place(text, &job, &target, &err)) {
        tt_gdb_put_error(err);
        return;
    }
    place = target;
    tt_gdb_post_job(job);
    gdb_put_packet("OK");
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
        gdb_put_packet("E.marks can be listed only in a replay");
        return;
    }
    tt_mark_each(note_mark, marks);
    for (; i < marks->len && answer->len < TT_GDB_ANSWER_BYTES; i++) {
        g_string_append_printf(answer, "%s%s", answer->len > 1 ? "," : "",
                               (char *)g_ptr_array_index(marks, i));
    }
    if (i >= marks->len) {
        answer->str[0] = 'l';
    }
    gdb_put_packet(answer->str);
}

/* ---- qtt.when ---- */

/* POSITION,END,HOW: HOW is how the last movement for gdb ended. */
static void handle_when(GArray *params, void *user_ctx)
{
    g_autofree char *answer =
        g_strdup_printf("%" PRIx64 ",%" PRIx64 ",%s", tt_position(),
                        tt_replaying() ? tt_replay_end() : tt_position(),
                        tt_stop_name(tt_gdb_job_reason()));

    gdb_put_packet(answer);
}

/* ---- qtt.turn ---- */

static void handle_turn(GArray *params, void *user_ctx)
{
    const CPUState *cpu = tt_vcpu() ?: first_cpu;
    g_autofree char *answer = g_strdup_printf("%x", cpu->cpu_index);

    gdb_put_packet(answer);
}

/* ---- qtt.step-memory[:SIZE] ---- */

static void handle_step_memory(GArray *params, void *user_ctx)
{
    g_autofree char *answer = g_strdup_printf("%zx", tt_travel_ring_bytes);

    gdb_put_packet(answer);
}

static void handle_set_step_memory(GArray *params, void *user_ctx)
{
    Error *err = NULL;

    if (tt_step_memory_set(params->len ? gdb_get_cmd_param(params, 0)->data : "", &err)) {
        gdb_put_packet("OK");
    } else {
        tt_gdb_put_error(err);
    }
}

static const GdbCmdParseEntry queries[] = {
    { .handler = handle_goto, .cmd = "tt.goto:", .cmd_startswith = true,
      .schema = "s0" },
    { .handler = handle_marks, .cmd = "tt.marks:", .cmd_startswith = true,
      .schema = "L0" },
    { .handler = handle_when, .cmd = "tt.when" },
    { .handler = handle_turn, .cmd = "tt.turn" },
    { .handler = handle_step_memory, .cmd = "tt.step-memory" },
    { .handler = handle_set_step_memory, .cmd = "tt.step-memory:", .cmd_startswith = true,
      .schema = "s0" },
};

void tt_gdb_init_queries(void)
{
    CPUState *cpu;

    tt_gdb_add_queries(queries, ARRAY_SIZE(queries));
    CPU_FOREACH(cpu) {
        gdb_register_coprocessor(cpu, read_position, write_position,
                                 &position_feature, 0);
    }
}
