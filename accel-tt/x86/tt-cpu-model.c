/* SPDX-License-Identifier: GPL-2.0-or-later */
/* CPU model tt-v1: QEMU's qemu64 with what x86-64-v2 has, and without what KVM answers by
 * itself. */
#include "qemu/osdep.h"
#include "accel-tt/x86/tt-cpu-model.h"
#include "cpu.h"
#include "cpu-internal.h"
#include "hw/core/cpu.h"
#include "hw/qdev-properties.h"
#include "qemu/host-utils.h"
#include "qemu/module.h"
#include "qom/object.h"

/* Globals come after the accelerator's own defaults. */
static GlobalProperty properties[] = {
    { TT_CPU_MODEL_TYPE, "tsc", "off" },
    { TT_CPU_MODEL_TYPE, "mce", "off" },
    { TT_CPU_MODEL_TYPE, "mca", "off" },
    { TT_CPU_MODEL_TYPE, "svm", "off" },
    { TT_CPU_MODEL_TYPE, "monitor", "off" },
    { TT_CPU_MODEL_TYPE, "x2apic", "off" },
    { TT_CPU_MODEL_TYPE, "kvm", "off" },
    /* Hypercalls that CPUID does not name are refused. */
    { TT_CPU_MODEL_TYPE, "kvm-pv-enforce-cpuid", "on" },
    /* QEMU would have bits in the masks of MTRRs that no guest sees. */
    { TT_CPU_MODEL_TYPE, "fill-mtrr-mask", "off" },
    { TT_CPU_MODEL_TYPE, "ssse3", "on" },
    { TT_CPU_MODEL_TYPE, "sse4.1", "on" },
    { TT_CPU_MODEL_TYPE, "sse4.2", "on" },
    { TT_CPU_MODEL_TYPE, "popcnt", "on" },
    /* A processor that has them executes REP BSF and REP BSR as these, whatever CPUID
     * says. */
    { TT_CPU_MODEL_TYPE, "bmi1", "on" },
    { TT_CPU_MODEL_TYPE, "abm", "on" },
};

static const struct {
    FeatureWord word;
    uint64_t mask;
    const char *name;
} bad[] = {
    { FEAT_1_EDX, CPUID_TSC, "tsc" },
    { FEAT_1_ECX, CPUID_EXT_RDRAND, "rdrand" },
    { FEAT_1_ECX, CPUID_EXT_XSAVE, "xsave" },
    { FEAT_1_ECX, CPUID_EXT_MONITOR, "monitor" },
    { FEAT_1_ECX, CPUID_EXT_X2APIC, "x2apic" },
    { FEAT_7_0_EBX, CPUID_7_0_EBX_RDSEED, "rdseed" },
    { FEAT_7_0_EBX, CPUID_7_0_EBX_RTM, "rtm" },
    { FEAT_7_0_EBX, CPUID_7_0_EBX_HLE, "hle" },
    { FEAT_8000_0001_EDX, CPUID_EXT2_RDTSCP, "rdtscp" },
    { FEAT_8000_0001_ECX, CPUID_EXT3_SVM, "svm" },
    { FEAT_1_ECX, CPUID_EXT_VMX, "vmx" },
    { FEAT_7_0_ECX, CPUID_7_0_ECX_PKU, "pku" },
    { FEAT_7_0_ECX, CPUID_7_0_ECX_RDPID, "rdpid" },
    { FEAT_7_0_ECX, CPUID_7_0_ECX_WAITPKG, "waitpkg" },
};

const char *tt_cpu_model_unrecordable(CPUState *cpu)
{
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        if (cpu_env(cpu)->features[bad[i].word] & bad[i].mask) {
            return bad[i].name;
        }
    }
    return X86_CPU(cpu)->enable_pmu ? "pmu" : NULL;
}

const char *tt_cpu_model_unreplayable(CPUState *cpu)
{
    for (unsigned w = 0; w < FEATURE_WORDS; w++) {
        const FeatureWordInfo *info = &feature_word_info[w];
        uint64_t more = cpu_env(cpu)->features[w] & ~info->tcg_features;

        if (more) {
            return info->feat_names[ctz64(more)] ?: "without a name";
        }
    }
    return NULL;
}

bool tt_cpu_model_has_tsc_frequency(CPUState *cpu)
{
    return cpu_env(cpu)->user_tsc_khz != 0;
}

static void register_model(void)
{
    static const TypeInfo type = {
        .name = TT_CPU_MODEL_TYPE, .parent = X86_CPU_TYPE_NAME("qemu64"),
    };

    type_register_static(&type);
    for (size_t i = 0; i < ARRAY_SIZE(properties); i++) {
        qdev_prop_register_global(&properties[i]);
    }
}

type_init(register_model);
