/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Conditions of gdb's breakpoints, which come as agent expressions with the breakpoint.
 * They are evaluated where the breakpoint is met, before the vCPU stops, so that a hit
 * whose condition is false costs no stop and no packet. Evaluation changes nothing in
 * the VM: no TLB entry, no accessed bit.
 *
 * gdb takes all breakpoints out when the VM stops and puts them in when it goes
 * on, so this table is short-lived.
 */
#include "qemu/osdep.h"
#include "accel-tt/tt-vcpu-backend.h"
#include "accel-tt/tt-vcpus.h"
#include "debug/tt-agent.h"
#include "io/tt-base.h"
#include "travel/tt-travel.h"
#include "tt-gdb-cond-int.h"
#include "tt/hooks-gdb.h"
#include "tt/hooks.h"
#include "hw/core/cpu.h"
#include "qemu/cutils.h"
#include "qemu/error-report.h"
#include "exec/cpu-common.h"
#include "exec/gdbstub.h"
#include "gdbstub/commands.h"

#define CONDITIONS_MAX 64       /* of one breakpoint; more: it always stops */

bool tt_gdb_has_conditions;

static GHashTable *conditions;  /* key_of -> GPtrArray of GByteArray */
static GByteArray *reg_bytes;
static TtGdbLook *look_first;

void tt_gdb_look_first(TtGdbLook *look)
{
    look_first = look;
}

/* ---- what a condition sees ---- */

static bool read_reg(void *opaque, unsigned number, uint64_t *value)
{
    uint8_t bytes[8] = { 0 };
    int len;

    g_byte_array_set_size(reg_bytes, 0);
    len = gdb_read_register(opaque, reg_bytes, number);
    if (len <= 0) {
        return false;
    }
    memcpy(bytes, reg_bytes->data, MIN(len, sizeof(bytes)));
    *value = tt_get_le64(bytes);
    return true;
}

static bool read_mem(void *opaque, uint64_t addr, uint8_t *bytes, unsigned len)
{
    return cpu_memory_rw_debug(opaque, addr, bytes, len, false) == 0;
}

static bool holds(CPUState *cpu, const GByteArray *code)
{
    const TtAgentSource source = {
        .opaque = cpu, .reg = read_reg, .mem = read_mem,
    };
    uint64_t value;

    return tt_agent_eval(code->data, code->len, &source, &value, NULL) != TT_OK
        || value;
}

/* A software and a hardware breakpoint may stand at one place. */
enum { KINDS = 2 };

static uint64_t key_of(uint64_t addr, unsigned kind)
{
    return addr * KINDS + kind;     /* wraps: no two of one address space do */
}

/* Is there none of this kind (0), one that holds (1), or that does not (-1)? */
static int look(CPUState *cpu, uint64_t pc, unsigned kind)
{
    uint64_t key = key_of(pc, kind);
    GPtrArray *list = g_hash_table_lookup(conditions, &key);

    if (!list) {
        return 0;
    }
    for (guint i = 0; i < list->len; i++) {
        if (holds(cpu, g_ptr_array_index(list, i))) {
            return 1;
        }
    }
    return list->len ? -1 : 1;
}

bool tt_gdb_condition_holds(CPUState *cpu, uint64_t pc)
{
    int soft, hard, first;

    /* A scan has breakpoints of its own, perhaps at the same address. */
    first = tt_travel_scans() ? 1 : look_first ? look_first(cpu, pc) : -1;

    if (first >= 0) {
        return first;
    }
    soft = look(cpu, pc, 0);
    hard = look(cpu, pc, 1);
    return soft > 0 || hard > 0 || (!soft && !hard);
}

/* ---- what gdb sends: X LENGTH,BYTES one after the other ---- */

static GByteArray *parse_one(const char **text)
{
    GByteArray *code;
    uint64_t len;

    if (**text != 'X' || qemu_strtou64(*text + 1, text, 16, &len) ||
        **text != ',' || len > TT_AGENT_BYTES_MAX) {
        return NULL;
    }
    code = g_byte_array_sized_new(len);
    for (++*text; code->len < len; *text += 2) {
        int high = g_ascii_xdigit_value((*text)[0]);
        int low = high < 0 ? -1 : g_ascii_xdigit_value((*text)[1]);
        uint8_t byte = high << 4 | low;

        if (low < 0) {
            g_byte_array_unref(code);
            return NULL;
        }
        g_byte_array_append(code, &byte, 1);
    }
    return code;
}

/* An empty list: it stops always. So does what cannot be read; gdb looks itself
 * whenever the VM stops. */
static GPtrArray *parse_all(const char *text)
{
    GPtrArray *list =
        g_ptr_array_new_with_free_func((GDestroyNotify)g_byte_array_unref);

    while (*text && *text != ';') {
        GByteArray *code = list->len < CONDITIONS_MAX ? parse_one(&text) : NULL;

        if (!code) {
            g_ptr_array_set_size(list, 0);
            break;
        }
        g_ptr_array_add(list, code);
    }
    return list;
}

static bool has_breakpoints(void)
{
    CPUBreakpoint *bp;

    QTAILQ_FOREACH(bp, &first_cpu->breakpoints, entry) {
        if (bp->flags & BP_GDB) {
            return true;
        }
    }
    return false;
}

/* KVM writes breakpoints into guest RAM, and steps with a flag that the guest can see:
 * a replay would find neither. gdb shows no sentence for these packets. */
bool tt_gdb_cannot_stop_at_places(void)
{
    if (!tt_recording() || !tt_backend->counts_exits) {
        return false;
    }
    warn_report_once("tt: gdb cannot set breakpoints or watchpoints, or step, in a VM "
                     "that is recorded under KVM: do that in a replay of the run");
    return true;
}

/*
 * gdb inserts again what is there when the condition has changed; QEMU would
 * have two then and remove one.
 */
const char *tt_gdb_inserts(unsigned kind, uint64_t addr, const char *text)
{
    uint64_t key = key_of(addr, kind);
    bool is_there;

    if (tt_gdb_cannot_stop_at_places()) {
        return "E22";
    }
    if (!conditions || kind >= KINDS) {
        return NULL;
    }
    if (!has_breakpoints()) {
        g_hash_table_remove_all(conditions);    /* of a gdb that is gone */
    }
    is_there = g_hash_table_contains(conditions, &key);
    g_hash_table_replace(conditions, g_memdup2(&key, sizeof(key)),
                         parse_all(text ?: ""));
    tt_gdb_has_conditions = true;
    return is_there ? "OK" : NULL;
}

void tt_gdb_removes(unsigned kind, uint64_t addr)
{
    uint64_t key = key_of(addr, kind);

    if (conditions && kind < KINDS) {
        g_hash_table_remove(conditions, &key);
    }
}

void tt_gdb_init_conditions(void)
{
    conditions = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free,
                                       (GDestroyNotify)g_ptr_array_unref);
    reg_bytes = g_byte_array_new();
    gdb_extend_qsupported_features((char *)";ConditionalBreakpoints+");
}
