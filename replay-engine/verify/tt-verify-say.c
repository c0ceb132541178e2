/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The messages of -tt replay,verify=... about a place: registers, pages, events.
 */
#include "qemu/osdep.h"
#include "accel-tt/tt-position.h"
#include "accel-tt/tt-vcpus.h"
#include "debug/tt-regtext.h"
#include "hw-tt/memory/tt-block.h"
#include "hw-tt/memory/tt-memory.h"
#include "log/tt-sched.h"
#include "pages/tt-page.h"
#include "replay/tt-replay-log.h"
#include "session/tt-events.h"
#include "tt-verify-say-int.h"
#include "hw/core/cpu.h"
#include "qemu/rcu.h"
#include "exec/memory.h"

void tt_verify_say(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    tt_tell_tool("tt-verify", fmt, ap);
    va_end(ap);
}

/* ---- pages ---- */

static const TtBlock *block_of(uint64_t page)
{
    const TtBlock *found = NULL;

    for (unsigned i = 0; i < tt_memory_n_blocks(); i++) {
        const TtBlock *b = tt_memory_block(i);

        if (b->first_page <= page) {
            found = b;
        }
    }
    return found;
}

typedef struct Place {
    const MemoryRegion *mr;
    uint64_t offset;            /* in it */
    uint64_t physical;          /* UINT64_MAX: the guest does not see it */
} Place;

static bool is_there(Int128 start, Int128 len, const MemoryRegion *mr,
                     hwaddr offset_in_region, void *opaque)
{
    Place *p = opaque;

    if (mr != p->mr || p->offset < offset_in_region ||
        p->offset - offset_in_region >= int128_get64(len)) {
        return false;
    }
    p->physical = int128_get64(start) + (p->offset - offset_in_region);
    return true;
}

static uint64_t physical_of(const TtBlock *b, uint64_t offset)
{
    Place p = { .mr = b->mr, .offset = offset, .physical = UINT64_MAX };

    RCU_READ_LOCK_GUARD();
    flatview_for_each_range(address_space_to_flatview(tt_vcpu()->as), is_there,
                            &p);
    return p.physical;
}

static char *hex(const uint8_t bytes[TT_VERIFY_BYTES])
{
    GString *s = g_string_new(NULL);

    for (unsigned i = 0; i < TT_VERIFY_BYTES; i++) {
        g_string_append_printf(s, "%02x", bytes[i]);
    }
    return g_string_free(s, false);
}

void tt_verify_say_page(const TtDiffering *d)
{
    const TtBlock *b = block_of(d->page);
    g_autofree char *recorded = hex(d->recorded), *replayed = hex(d->replayed);
    g_autofree char *where = NULL;
    uint64_t offset, physical;

    offset = (d->page - (b ? b->first_page : 0)) * TT_PAGE_BYTES + d->offset;
    physical = b ? physical_of(b, offset) : UINT64_MAX;
    where = physical == UINT64_MAX ? g_strdup("none") :
        g_strdup_printf("0x%" PRIx64, physical);
    tt_verify_say("page page=%" PRIu64 " offset=0x%" PRIx64 " physical=%s "
                  "bytes=%u recorded=%s replayed=%s block=%s", d->page, offset,
                  where, d->n_bytes, recorded, replayed, b ? b->name : "?");
}

bool tt_verify_page_differs(uint64_t page, const void *bytes, TtDiffering *d)
{
    static const uint8_t zeros[TT_PAGE_BYTES];
    const uint8_t *recorded = bytes ?: zeros, *replayed;
    unsigned at = 0;

    if (page >= tt_memory_n_pages()) {
        return false;           /* that checkpoint cannot be restored, then */
    }
    replayed = tt_memory_page(NULL, page);
    if (!memcmp(recorded, replayed, TT_PAGE_BYTES)) {
        return false;
    }
    while (recorded[at] == replayed[at]) {
        at++;
    }
    at = MIN(at, TT_PAGE_BYTES - TT_VERIFY_BYTES);
    *d = (TtDiffering) { .page = page, .offset = at };
    for (unsigned i = at; i < TT_PAGE_BYTES; i++) {
        d->n_bytes += recorded[i] != replayed[i];
    }
    memcpy(d->recorded, recorded + at, TT_VERIFY_BYTES);
    memcpy(d->replayed, replayed + at, TT_VERIFY_BYTES);
    return true;
}

/* ---- registers ---- */

static TtRegs *registers_of(CPUState *cpu)
{
    char *text = NULL;
    size_t len = 0;
    FILE *f = open_memstream(&text, &len);
    TtRegs *r;

    if (f) {
        cpu_dump_state(cpu, f, CPU_DUMP_FPU);
        fclose(f);
    }
    r = tt_regs_parse(text ?: "");
    free(text);
    return r;
}

GPtrArray *tt_verify_registers(void)
{
    GPtrArray *all = g_ptr_array_new_with_free_func(
        (GDestroyNotify)tt_regs_free);

    for (unsigned i = 0; i < tt_vcpus_count(); i++) {
        g_ptr_array_add(all, registers_of(tt_vcpus_at(i)));
    }
    return all;
}

void tt_verify_say_state(void)
{
    static const char *const names[] = {
        "RIP", "EIP", "CS", "RFL", "EFL", "RSP", "ESP", "CR3", "RAX", "RBX",
        "RCX", "RDX", "RSI", "RDI", "RBP", "R8", "R9", "R10", "R11", "R12",
        "R13", "R14", "R15", "EAX", "EBX", "ECX", "EDX", "ESI", "EDI", "EBP",
        "CR0", "CR2", "CR4", "HLT",
    };
    g_autoptr(GString) s = g_string_new(NULL);
    TtRegs *r = registers_of(tt_vcpu());

    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        const char *value = tt_regs_find(r, names[i]);

        if (value) {
            g_string_append_printf(s, " %s=%.*s", names[i],
                                   (int)strcspn(value, " "), value);
        }
    }
    tt_regs_free(r);
    tt_verify_say("state position=%" PRIu64 " cpu=%d text=%s", tt_now.pos,
                  tt_vcpu()->cpu_index, s->str + (s->len > 0));
}

/* Most instructions change these: who wrote them last says nothing. */
static bool changes_often(const char *name)
{
    static const char *const names[] = {
        "RIP", "EIP", "RFL", "EFL", "II", "HLT", "CPL",
    };

    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        if (!strcmp(name, names[i])) {
            return true;
        }
    }
    return false;
}

/* In one piece. */
static char *one_word(const char *value)
{
    return g_strdelimit(g_strdup(value ?: "none"), " ", '_');
}

typedef struct Comparing {
    unsigned cpu;
    TtVerifyReg *one;
} Comparing;

static void register_differs(void *opaque, const char *name,
                             const char *replayed, const char *recorded)
{
    g_autofree char *was = one_word(recorded), *is = one_word(replayed);
    Comparing *c = opaque;

    tt_verify_say("register cpu=%u name=%s recorded=%s replayed=%s", c->cpu,
                  name, was, is);
    if (replayed && !c->one->name && !changes_often(name)) {
        *c->one = (TtVerifyReg) {
            .cpu = c->cpu, .name = g_strdup(name),
            .replayed = g_strdup(replayed),
        };
    }
}

void tt_verify_compare_registers(GPtrArray *replayed, GPtrArray *recorded,
                                 TtVerifyReg *one)
{
    Comparing c = { .one = one };
    size_t n = 0;

    for (c.cpu = 0; c.cpu < MIN(replayed->len, recorded->len); c.cpu++) {
        n += tt_regs_compare(replayed->pdata[c.cpu], recorded->pdata[c.cpu],
                             register_differs, &c);
    }
    if (!n) {
        tt_verify_say("hidden");
    }
}

void tt_verify_reg_cleanup(TtVerifyReg *r)
{
    g_free(r->name);
    g_free(r->replayed);
    memset(r, 0, sizeof(*r));
}

bool tt_verify_reg_is(const TtVerifyReg *r)
{
    TtRegs *now = registers_of(tt_vcpus_at(r->cpu));
    bool is = !g_strcmp0(tt_regs_find(now, r->name), r->replayed);

    tt_regs_free(now);
    return is;
}

/* ---- events ---- */

/* A digest, which nothing came in with. */
static bool is_digest(const char *line)
{
    const char *kind = line + strspn(line, " 0123456789");

    return g_str_has_prefix(kind, "check ") ||
        g_str_has_prefix(kind, "digest ");
}

void tt_verify_say_events(void)
{
    g_autofree char *text = tt_sched_context(tt_replay_sched(), 6, 0);
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    const char *before = NULL, *next = NULL;

    for (char **l = lines; *l; l++) {
        if (**l == '>') {
            next = g_strstrip(*l + 1);
        } else if (**l && (!before || !is_digest(*l))) {
            before = g_strstrip(*l);
        }
    }
    if (before) {
        tt_verify_say("before text=%s", before);
    }
    if (next) {
        tt_verify_say("next text=%s", next);
    }
}
