/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The x86 vCPU as the engine sees it: identity, state as bytes, and the
 * delivery of recorded interrupts.
 *
 * State bytes: "TTCP", version, flags by TT_FLAG_*, then QEMU's own vmstate of
 * the CPU. vmstate omits what is zero, so loading starts from a cleared CPU. The
 * SSE exception flags that TCG keeps aside are folded into MXCSR before saving.
 */
#include "qemu/osdep.h"
#include "accel-tt/x86/tt-target.h"
#include "io/tt-base.h"
#include "log/tt-log.h"
#include "run/tt-manifest.h"
#include "session/tt-ops.h"
#include "session/tt-session.h"
#include "tt-x86-int.h"
#include "tt/hooks.h"
#include "qapi/error.h"
#include "hw/core/cpu.h"
#include "cpu.h"
#include "qemu/main-loop.h"
#include "io/channel-buffer.h"
#include "migration/vmstate.h"
#include "migration/qemu-file-types.h"
#include "migration/qemu-file.h"
#include "exec/exec-all.h"
#include "exec/cputlb.h"
#include "exec/tb-flush.h"
#include "tcg/helper-tcg.h"
#include "hw/i386/topology.h"

bool tt_insn_counted;

#define STATE_MAGIC   0x50435454u       /* "TTCP" */
#define STATE_VERSION 1
#define STATE_HEAD    (8 + 8 * 4)

/* ---- identity: what makes the translator and the MMU behave ---- */

typedef struct Word {
    size_t offset;
    unsigned count;
} Word;

#define WORD(field) { offsetof(X86CPU, field), 1 }

static const Word identity[] = {
    { offsetof(X86CPU, env.features), sizeof(FeatureWordArray) / 4 },
    { offsetof(X86CPU, env.cpuid_model), 12 },
    WORD(env.cpuid_level), WORD(env.cpuid_xlevel), WORD(env.cpuid_xlevel2),
    WORD(env.cpuid_vendor1), WORD(env.cpuid_vendor2), WORD(env.cpuid_vendor3),
    WORD(env.cpuid_version), WORD(env.cpuid_level_func7), WORD(phys_bits),
};

static unsigned identity_words(void)
{
    unsigned i, n = 0;

    for (i = 0; i < ARRAY_SIZE(identity); i++) {
        n += identity[i].count;
    }
    assert(n <= TT_CPU_WORDS_MAX);
    return n;
}

void tt_target_identity(CPUState *cpu, TtManifest *m)
{
    uint8_t *base = (uint8_t *)X86_CPU(cpu);
    unsigned i, n = 0;

    m->cpu_type = g_strdup(object_get_typename(OBJECT(cpu)));
    m->n_cpu_words = identity_words();
    for (i = 0; i < ARRAY_SIZE(identity); i++) {
        memcpy(m->cpu_words + n, base + identity[i].offset,
               identity[i].count * sizeof(uint32_t));
        n += identity[i].count;
    }
}

bool tt_target_adopt_identity(CPUState *cpu, const TtManifest *m, Error **errp)
{
    uint8_t *base = (uint8_t *)X86_CPU(cpu);
    unsigned i, n = 0;

    if (m->n_cpu_words != identity_words()) {
        g_autofree char *version = g_strescape(m->qemu_version, NULL);

        error_setg(errp, "the run describes its CPU with %u words, but this QEMU "
                   "expects %u: replay it with the QEMU version that recorded it "
                   "(%s)",
                   m->n_cpu_words, identity_words(), version);
        return false;
    }
    for (i = 0; i < ARRAY_SIZE(identity); i++) {
        memcpy(base + identity[i].offset, m->cpu_words + n,
               identity[i].count * sizeof(uint32_t));
        n += identity[i].count;
    }
    return true;
}

/* ---- flags that devices set behind the CPU's back ---- */

void tt_target_flags(CPUState *cpu, uint64_t flags[4])
{
    CPUX86State *env = cpu_env(cpu);

    flags[0] = 0;
    flags[TT_FLAG_A20] = (env->a20_mask >> 20) & 1;
    flags[TT_FLAG_IGNNE] = !!(env->hflags2 & HF2_IGNNE_MASK);
    flags[TT_FLAG_APIC_FEATURE] =
        !!(env->features[FEAT_1_EDX] & CPUID_APIC);
}

void tt_target_set_flag(CPUState *cpu, unsigned flag, uint64_t val)
{
    CPUX86State *env = cpu_env(cpu);

    switch (flag) {
    case TT_FLAG_A20:
        x86_cpu_set_a20(X86_CPU(cpu), val);
        break;
    case TT_FLAG_IGNNE:
        env->hflags2 = (env->hflags2 & ~HF2_IGNNE_MASK) |
            (val ? HF2_IGNNE_MASK : 0);
        break;
    case TT_FLAG_APIC_FEATURE:
        env->features[FEAT_1_EDX] =
            (env->features[FEAT_1_EDX] & ~CPUID_APIC) | (val ? CPUID_APIC : 0);
        break;
    default:
        if (flag >= TT_FLAG_REGISTER &&
            flag < TT_FLAG_REGISTER + CPU_NB_REGS) {
            env->regs[flag - TT_FLAG_REGISTER] = val;
        }
        break;
    }
}

/* ---- registers that a device changes ---- */

void tt_target_note_regs(CPUState *cpu, uint64_t regs[TT_TARGET_REGS])
{
    QEMU_BUILD_BUG_ON(sizeof(cpu_env(cpu)->regs) != TT_TARGET_REGS * 8);
    memcpy(regs, cpu_env(cpu)->regs, TT_TARGET_REGS * 8);
}

void tt_target_log_regs(CPUState *cpu, const uint64_t before[TT_TARGET_REGS])
{
    const target_ulong *now = cpu_env(cpu)->regs;

    if (likely(!memcmp(before, now, TT_TARGET_REGS * 8)) ||
        (tt_omit & TT_OMIT_DEVICE_REGS)) {
        return;
    }
    for (unsigned i = 0; i < TT_TARGET_REGS; i++) {
        TtEvent ev = {
            .kind = TT_EV_CPU_FLAG, .cpu = cpu->cpu_index,
            .addr = TT_FLAG_REGISTER + i, .val = now[i],
        };

        if (now[i] != before[i]) {
            tt_log_event(&ev);
        }
    }
}

void tt_target_swap_links(CPUState *cpu, TtLinks *other)
{
    TtLinks now = {
        .requests = cpu->interrupt_request, .apic = X86_CPU(cpu)->apic_state,
    };

    cpu->interrupt_request = other->requests;
    X86_CPU(cpu)->apic_state = other->apic;
    *other = now;
}

/* ---- state as bytes ---- */

static void unpack_unkept(CPUX86State *env, uint64_t v)
{
    env->fpcs = v;
    env->fpds = v >> 16;
    if (!(tt_session.manifest.rules & TT_RULE_WHOLE_STATE)) {
        return;                 /* a run of before: it is 0 there */
    }
    env->msr_smi_count = v >> 32;
}

void tt_target_settle(CPUState *cpu)
{
    update_mxcsr_from_sse_status(cpu_env(cpu));
}

GByteArray *tt_target_save(CPUState *cpu)
{
    g_autoptr(QIOChannelBuffer) bioc = qio_channel_buffer_new(16384);
    GByteArray *out = g_byte_array_new();
    uint8_t head[STATE_HEAD];
    uint64_t flags[4];
    QEMUFile *f;
    int i;

    tt_target_settle(cpu);
    tt_target_flags(cpu, flags);
    flags[0] = tt_omit & TT_OMIT_UNKEPT ? 0 : tt_x86_pack_unkept(cpu_env(cpu));
    tt_put_le32(head, STATE_MAGIC);
    tt_put_le32(head + 4, STATE_VERSION);
    for (i = 0; i < 4; i++) {
        tt_put_le64(head + 8 + 8 * i, flags[i]);
    }
    f = qemu_file_new_output(QIO_CHANNEL(bioc));
    vmstate_save_state(f, &vmstate_x86_cpu, X86_CPU(cpu), NULL);
    qemu_fflush(f);
    g_byte_array_append(out, head, sizeof(head));
    g_byte_array_append(out, bioc->data, bioc->usage);
    qemu_fclose(f);
    cpu_env(cpu)->v_tpr = 0;            /* vmstate's copy of a part of int_ctl */
    return out;
}

static void clear_state(CPUState *cpu)
{
    CPUX86State *env = cpu_env(cpu);

    cpu_breakpoint_remove_all(cpu, BP_CPU);
    cpu_watchpoint_remove_all(cpu, BP_CPU);
    memset(env, 0, offsetof(CPUX86State, end_reset_fields));
    cpu_init_fp_statuses(env);
    env->old_exception = -1;
    env->exception_nr = -1;
    env->umwait = 0;
    env->xss = 0;
    env->mcg_ext_ctl = 0;
    /* Fields that vmstate omits when they have their values after a reset. */
    env->msr_ia32_misc_enable = MSR_IA32_MISC_ENABLE_DEFAULT;
    env->poll_control_msr = 1;
}

/*
 * A run may come from anybody. And a build with KVM takes a guest's guest for one of
 * KVM's, which it has to know of: not under TCG.
 */
static int post_load(void *opaque, int version)
{
    CPUX86State *env = &X86_CPU(opaque)->env;
    uint32_t guest = env->hflags & HF_GUEST_MASK;
    int ret;

    if ((4 * env->mcg_cap & 0xff) > ARRAY_SIZE(env->mce_banks)) {
        return -EINVAL;         /* RDMSR takes it for their number */
    }
    env->hflags &= ~HF_GUEST_MASK;
    ret = vmstate_x86_cpu.post_load(opaque, version);
    env->hflags |= guest;
    return ret;
}

/* QEMU's description of the CPU, without the parts that are loaded into what only
 * KVM makes. */
static const VMStateDescription *description(void)
{
    static const char *const of_kvm[] = { "cpu/nested_state", "cpu/xen_vcpu", NULL };
    static VMStateDescription d;
    GPtrArray *parts;

    if (!d.name) {
        parts = g_ptr_array_new();
        d = vmstate_x86_cpu;
        d.post_load = post_load;
        for (unsigned i = 0; vmstate_x86_cpu.subsections[i]; i++) {
            if (!g_strv_contains(of_kvm, vmstate_x86_cpu.subsections[i]->name)) {
                g_ptr_array_add(parts, (void *)vmstate_x86_cpu.subsections[i]);
            }
        }
        g_ptr_array_add(parts, NULL);
        d.subsections = (void *)g_ptr_array_free(parts, false);
    }
    return &d;
}

bool tt_target_load(CPUState *cpu, const uint8_t *data, size_t len,
                    Error **errp)
{
    g_autoptr(QIOChannelBuffer) bioc = NULL;
    QEMUFile *f;
    int i, ret;

    if (len < STATE_HEAD || tt_get_le32(data) != STATE_MAGIC ||
        tt_get_le32(data + 4) != STATE_VERSION) {
        error_setg(errp, "this version cannot read the run's CPU state: it is "
                   "damaged or from a newer version");
        return false;
    }
    bioc = qio_channel_buffer_new(len);
    memcpy(bioc->data, data + STATE_HEAD, len - STATE_HEAD);
    bioc->usage = len - STATE_HEAD;
    f = qemu_file_new_input(QIO_CHANNEL(bioc));
    clear_state(cpu);
    ret = vmstate_load_state(f, description(), X86_CPU(cpu),
                             vmstate_x86_cpu.version_id);
    qemu_fclose(f);
    if (ret < 0) {
        clear_state(cpu);               /* what was refused is not kept, nor saved */
        cpu_env(cpu)->mcg_cap = 0;
        cpu_env(cpu)->msr_hv_reenlightenment_control = 0;
        error_setg(errp, "QEMU cannot load the run's CPU state: it is damaged");
        return false;
    }
    cpu_env(cpu)->v_tpr = 0;            /* as tt_target_save leaves it */
    unpack_unkept(cpu_env(cpu), tt_get_le64(data + 8));
    for (i = 1; i < 4; i++) {
        tt_target_set_flag(cpu, i, tt_get_le64(data + 8 + 8 * i));
    }
    cpu->exception_index = -1;
    cpu->cflags_next_tb = -1;
    cpu->watchpoint_hit = NULL;
    if (tt_replaying()) {
        cpu->interrupt_request = 0;     /* a debug interrupt of another time */
    }
    tt_insn_counted = false;
    tlb_flush(cpu);
    tcg_flush_jmp_cache(cpu);
    return true;
}

/* ---- interrupts ---- */

static const struct {
    int mask;
    uint64_t intr_class;
    uint32_t svm_exit;
} classes[] = {
    { CPU_INTERRUPT_HARD, TT_INTR_HARD, SVM_EXIT_INTR },
    { CPU_INTERRUPT_NMI, TT_INTR_NMI, SVM_EXIT_NMI },
    { CPU_INTERRUPT_SMI, TT_INTR_SMI, SVM_EXIT_SMI },
    { CPU_INTERRUPT_VIRQ, TT_INTR_VIRQ, SVM_EXIT_VINTR },
    { CPU_INTERRUPT_MCE, TT_INTR_MCE, 0 },
};

uint64_t tt_target_intr_class(int mask)
{
    size_t i;

    for (i = 0; i < ARRAY_SIZE(classes); i++) {
        if (classes[i].mask == mask) {
            return classes[i].intr_class;
        }
    }
    return 0;
}

static uint32_t svm_exit_of(uint64_t intr_class)
{
    size_t i;

    for (i = 0; i < ARRAY_SIZE(classes); i++) {
        if (classes[i].intr_class == intr_class) {
            return classes[i].svm_exit;
        }
    }
    return 0;
}

bool tt_target_intercepts(CPUState *cpu, uint64_t intr_class)
{
    CPUX86State *env = cpu_env(cpu);
    uint32_t exit = svm_exit_of(intr_class);

    return (env->hflags & HF_GUEST_MASK) && exit &&
        cpu_svm_has_intercept(env, exit);
}

bool tt_target_deliver(CPUState *cpu, uint64_t type, uint64_t vector)
{
    X86CPU *x86 = X86_CPU(cpu);
    CPUX86State *env = &x86->env;

    if (type & TT_INTR_INTERCEPTED) {
        cpu_svm_check_intercept_param(env, svm_exit_of(type & 0x7f), 0, 0);
        return false;           /* the guest no longer intercepts it */
    }
    switch (type) {
    case TT_INTR_SMI:
        do_smm_enter(x86);
        return true;
    case TT_INTR_NMI:
        env->hflags2 |= HF2_NMI_MASK;
        do_interrupt_x86_hardirq(env, EXCP02_NMI, 1);
        return true;
    case TT_INTR_MCE:
        do_interrupt_x86_hardirq(env, EXCP12_MCHK, 0);
        return true;
    case TT_INTR_HARD:
        do_interrupt_x86_hardirq(env, vector, 1);
        return true;
    case TT_INTR_VIRQ:
        do_interrupt_x86_hardirq(env, vector, 1);
        env->int_ctl &= ~V_IRQ_MASK;
        return true;
    }
    return false;
}
