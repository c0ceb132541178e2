/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One process of the guest: registers that say whose turn it is, for conditions
 * of breakpoints, and watchpoints that count in one process only.
 *
 * gdb evaluates a watchpoint's condition itself, with a stop for each access, and
 * compares values which may be those of another process. So scripts/tt-gdb.py
 * says here in which process the accesses to an address count; all others are
 * not even told to gdb.
 */
#include "qemu/osdep.h"
#include "accel-tt/x86/tt-process.h"
#include "io/tt-base.h"
#include "travel/tt-travel.h"
#include "tt-gdb-packets-int.h"
#include "tt-gdb-process-int.h"
#include "tt/hooks.h"
#include "hw/core/cpu.h"
#include "qemu/cutils.h"
#include "exec/gdbstub.h"
#include "gdbstub/commands.h"

#define FILTERS_MAX 64

bool tt_gdb_has_filters;

typedef struct Filter {
    vaddr addr, len;
    bool only_writes;
    TtGdbWho who;
} Filter;

static GArray *filters;

/* ---- $tt_root, $tt_pid, $tt_name, $tt_name2 ---- */

enum { REG_ROOT, REG_PID, REG_NAME, REG_NAME2 };

static const char process_xml[] =
    "<?xml version=\"1.0\"?>"
    "<!DOCTYPE feature SYSTEM \"gdb-target.dtd\">"
    "<feature name=\"org.ttvm.process\">"
    "<reg name=\"tt_root\" bitsize=\"64\" type=\"uint64\""
    " save-restore=\"no\"/>"
    "<reg name=\"tt_pid\" bitsize=\"64\" type=\"int64\""
    " save-restore=\"no\"/>"
    "<reg name=\"tt_name\" bitsize=\"64\" type=\"uint64\""
    " save-restore=\"no\"/>"
    "<reg name=\"tt_name2\" bitsize=\"64\" type=\"uint64\""
    " save-restore=\"no\"/>"
    "</feature>";

static const char *const process_regs[] = {
    [REG_ROOT] = "tt_root", [REG_PID] = "tt_pid",
    [REG_NAME] = "tt_name", [REG_NAME2] = "tt_name2",
};

static const GDBFeature process_feature = {
    .xmlname = "tt-process.xml",
    .xml = process_xml,
    .name = "org.ttvm.process",
    .regs = process_regs,
    .num_regs = ARRAY_SIZE(process_regs),
};

static uint64_t value_of(const TtProcess *p, int reg)
{
    switch (reg) {
    case REG_ROOT:
        return p->root;
    case REG_PID:
        return p->pid;
    default:
        return tt_get_le64(p->name + (reg == REG_NAME2 ? 8 : 0));
    }
}

static int read_process(CPUState *cpu, GByteArray *buf, int reg)
{
    uint8_t bytes[8];
    TtProcess p;

    tt_process_now(cpu, &p);
    tt_put_le64(bytes, value_of(&p, reg));
    g_byte_array_append(buf, bytes, sizeof(bytes));
    return sizeof(bytes);
}

/* In a recording gdb may try; nothing is written. */
static int write_process(CPUState *cpu, uint8_t *buf, int reg)
{
    return 8;
}

/* ---- qtt.linux:[CURRENT,PID,NAME] ---- */

static const char *only_text(GArray *params)
{
    return params->len ? gdb_get_cmd_param(params, 0)->data : "";
}

static void tell_linux(void)
{
    const TtLinuxLayout *l = tt_process_layout();
    g_autofree char *text = l ?
        g_strdup_printf("%" PRIx64 ",%" PRIx64 ",%" PRIx64, l->current, l->pid,
                        l->name) : g_strdup("none");

    gdb_put_packet(text);
}

static void handle_linux(GArray *params, void *user_ctx)
{
    uint64_t v[3];

    if (!*only_text(params)) {
        tell_linux();
        return;
    }
    if (tt_gdb_parse_list(only_text(params), v, 3) != 3) {
        gdb_put_packet("E.qtt.linux takes nothing, or three offsets in hex: that of the "
                       "current task from the base of GS, and those of the process's "
                       "number and name in a task");
        return;
    }
    tt_process_set_layout(&(TtLinuxLayout) {
        .current = v[0], .pid = v[1], .name = v[2] });
    gdb_put_packet("OK");
}

/* ---- qtt.only:ADDRESS,LENGTH,WRITES,KIND,VALUE,VALUE2 ---- */

bool tt_gdb_parse_who(const uint64_t v[3], TtGdbWho *who)
{
    *who = (TtGdbWho) { .kind = v[0], .value = { v[1], v[2] } };
    return v[0] == 'r' || v[0] == 'p' || v[0] == 'n';
}

bool tt_gdb_is_turn_of(CPUState *cpu, const TtGdbWho *who)
{
    TtProcess p;

    if (!who->kind) {
        return true;
    }
    tt_process_now(cpu, &p);
    switch (who->kind) {
    case 'r':
        return p.root == who->value[0];
    case 'p':
        return p.pid == (int64_t)who->value[0];
    default:
        return value_of(&p, REG_NAME) == who->value[0] &&
            value_of(&p, REG_NAME2) == who->value[1];
    }
}

bool tt_gdb_filter_passes(CPUState *cpu, const CPUWatchpoint *wp, int access)
{
    bool is_filtered = false;

    /* A scan has watchpoints of its own, perhaps at the same address. */
    if (!(wp->flags & BP_GDB) || tt_travel_scans()) {
        return true;
    }
    for (guint i = 0; i < filters->len; i++) {
        const Filter *f = &g_array_index(filters, Filter, i);

        if (f->addr != wp->vaddr || f->len != wp->len) {
            continue;
        }
        is_filtered = true;
        if ((!f->only_writes || (access & BP_MEM_WRITE)) &&
            tt_gdb_is_turn_of(cpu, &f->who)) {
            return true;
        }
    }
    return !is_filtered;
}

static void add_filter(const uint64_t v[6], const TtGdbWho *who)
{
    Filter new = {
        .addr = v[0], .len = v[1], .only_writes = v[2], .who = *who,
    };

    g_array_append_val(filters, new);
    tt_gdb_has_filters = true;
}

static void forget_filters(void)
{
    g_array_set_size(filters, 0);
    tt_gdb_has_filters = false;
}

static void handle_only(GArray *params, void *user_ctx)
{
    const char *text = only_text(params);
    uint64_t v[6];
    TtGdbWho who;

    if (!*text) {
        forget_filters();
        gdb_put_packet("OK");
    } else if (tt_gdb_parse_list(text, v, 6) != 6 ||
               !tt_gdb_parse_who(v + 3, &who)) {
        gdb_put_packet("E.qtt.only takes nothing, or "
                       "ADDRESS,LENGTH,WRITES,KIND,VALUE,VALUE2 in hex; KIND is the "
                       "letter r, p or n");
    } else if (filters->len >= FILTERS_MAX) {
        gdb_put_packet("E.there can be at most 64 watchpoints of single processes: "
                       "delete some");
    } else {
        add_filter(v, &who);
        gdb_put_packet("OK");
    }
}

static const GdbCmdParseEntry queries[] = {
    { .handler = handle_linux, .cmd = "tt.linux:", .cmd_startswith = true,
      .schema = "s0" },
    { .handler = handle_only, .cmd = "tt.only:", .cmd_startswith = true,
      .schema = "s0" },
};

void tt_gdb_process_attached(void)
{
    forget_filters();
}

void tt_gdb_init_process(void)
{
    CPUState *cpu;

    filters = g_array_new(false, false, sizeof(Filter));
    tt_gdb_add_queries(queries, ARRAY_SIZE(queries));
    CPU_FOREACH(cpu) {
        gdb_register_coprocessor(cpu, read_process, write_process,
                                 &process_feature, 0);
    }
}
