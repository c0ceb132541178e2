/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The manifest of a run: the facts that a replay must know before the first event, and
 * those that a user wants to know about the recording. A GKeyFile text, described in
 * docs/reference/manifest.rst; written once when the recording starts (temporary name,
 * then rename), never changed.
 *
 * Context: any thread; blocks on the file. Caller owns the struct; free what
 * it holds with tt_manifest_cleanup.
 */
#ifndef TT_MANIFEST_H
#define TT_MANIFEST_H

#include "io/tt-base.h"
#include "io/tt-io.h"

#define TT_SYNC_STARTS_MAX     20000u
#define TT_MANIFEST_BYTES_MAX  (1u << 20)
#define TT_BLOCKS_MAX          1024
#define TT_BLOCK_NAME_MAX      255
#define TT_BLOCK_BYTES_MAX     (1ull << 46)
#define TT_CPU_WORDS_MAX       256
#define TT_CPUS_MAX            256
#define TT_DISKS_MAX           256

/* Must-know bits that this version knows. A new one is added here when a
 * replay by an older version would go wrong without knowing it. */
#define TT_FEATURE_PARENT      (UINT64_C(1) << 0)   /* begins with the RAM of
                                                       another run's
                                                       checkpoint */
#define TT_FEATURE_SCRUBBED    (UINT64_C(1) << 1)   /* what went in and out was
                                                       taken out of the log */
#define TT_FEATURE_WINDOW      (UINT64_C(1) << 2)   /* of the log there may be the
                                                       last part only: it is in
                                                       parts (log/tt-logparts.h) */
#define TT_FEATURE_EXITS       (UINT64_C(1) << 3)   /* recorded under KVM, and not yet
                                                       converted: its positions
                                                       are exits */
#define TT_FEATURE_DISKS       (UINT64_C(1) << 4)   /* what was read from disks is
                                                       there, not in the log */
#define TT_FEATURE_SYNC_STARTS (UINT64_C(1) << 5)   /* sync points count anew from some
                                                       positions */
#define TT_FEATURE_FRAMES      (UINT64_C(1) << 6)   /* what other runs sent is in their
                                                       frame stores, not in the log */
#define TT_MANIFEST_FEATURES   (TT_FEATURE_PARENT | TT_FEATURE_SCRUBBED | \
                                TT_FEATURE_WINDOW | TT_FEATURE_EXITS | \
                                TT_FEATURE_DISKS | TT_FEATURE_SYNC_STARTS | \
                                TT_FEATURE_FRAMES)

/* How the last line begins; the SHA-256 of all before it follows. Runs since rule
 * TT_RULE_WHOLE_STATE have it. */
#define TT_MANIFEST_SUM "# sha256 "

/*
 * Rules of execution: choices, of several that would do, by which the vCPU is the same
 * in the recording and in the replay (explanation/determinism.rst). A replay by other
 * rules diverges somewhere, so it is refused. To change the meaning of one, take a new
 * bit for it, and leave the old one out.
 */
#define TT_RULE_COUNT       (UINT64_C(1) << 0)  /* what moves the position */
#define TT_RULE_RESUME_FLAG (UINT64_C(1) << 2)  /* ends with its instruction */
#define TT_RULE_BT_FLAGS    (UINT64_C(1) << 3)  /* undefined flags of bit tests
                                                   always computed one way */
#define TT_RULE_FETCH       (UINT64_C(1) << 4)  /* when code pages are looked
                                                   up; bit 1 until 2026-11 */
#define TT_RULE_VICTIMS     (UINT64_C(1) << 5)  /* what the TLB pushed out is
                                                   found whatever its flags */
#define TT_RULE_WHOLE_STATE (UINT64_C(1) << 6)  /* of a vCPU: in what is stored,
                                                   and in its digest; a run
                                                   without can be replayed, too */
#define TT_RULE_LIKE_HARDWARE (UINT64_C(1) << 7) /* what the manuals leave undefined
                                                    is as on a real CPU; chosen
                                                    for each run */
#define TT_RULE_KVM         (UINT64_C(1) << 8)  /* recorded under KVM: MSRs that QEMU
                                                   answered are inputs, the CPU
                                                   is like hardware where TCG's
                                                   is not */
#define TT_RULE_FETCH_FAULT (UINT64_C(1) << 9)  /* a fetch that faults names its address;
                                                   a run without, where only the page
                                                   was named, can be replayed, too */
#define TT_MANIFEST_RULES   (TT_RULE_COUNT | TT_RULE_RESUME_FLAG | \
                             TT_RULE_BT_FLAGS | TT_RULE_FETCH | \
                             TT_RULE_VICTIMS | TT_RULE_WHOLE_STATE | \
                             TT_RULE_FETCH_FAULT)

enum {
    TT_BLOCK_ROM = 1,           /* read-only for the guest */
    TT_BLOCK_ROMD = 2,          /* rom device: reads direct, writes trapped */
    TT_BLOCK_PARENT = 4,        /* in the log only: begins as in the parent */
};

typedef struct TtBlockInfo {
    char name[TT_BLOCK_NAME_MAX + 1];
    uint64_t size_bytes;        /* used length; page multiple not required */
    uint64_t max_bytes;         /* >= size_bytes: what it may be resized to */
    uint32_t flags;             /* TT_BLOCK_* */
} TtBlockInfo;

typedef struct TtManifest {
    uint8_t uuid[16];           /* same as the log's */
    uint64_t features;          /* must-know bits; not known: TT_ERR_VERSION */
    uint64_t rules;             /* TT_RULE_*, see tt_manifest_check_rules */
    char *qemu_version;
    char *tt_version;
    char *accel;                /* "tcg", "kvm" */
    char *command_line;         /* shell-quoted, if directory is there */
    char *directory;            /* in which it was given; "": not known, and
                                   command_line is for people only */
    char *host;                 /* for people */
    char *positions;            /* for people; KVM: what they were made of */
    char *started;              /* ISO 8601, for people */
    uint64_t tlb_entries;       /* of the TLB of each MMU mode */
    uint64_t sync_interval;    /* the TLB is flushed at multiples of this
                                   position; 0: never */
    /* With TT_FEATURE_SYNC_STARTS: ascending; each is a sync point. */
    unsigned n_sync_starts;
    uint64_t *sync_starts;      /* g_malloc'ed array */
    uint32_t n_cpus;
    char *cpu_type;             /* QOM type name of the vCPUs */
    uint32_t cpu_words[TT_CPU_WORDS_MAX];   /* target's opaque identity */
    unsigned n_cpu_words;
    unsigned n_blocks;
    TtBlockInfo *blocks;        /* g_malloc'ed array */
    /* With TT_FEATURE_PARENT: the checkpoint that the run begins with. */
    char *parent_path;          /* absolute, or relative to the run */
    uint8_t parent_uuid[16];
    uint32_t parent_checkpoint;
    uint64_t parent_pos;
    /* With TT_FEATURE_DISKS: the disks with versions that the log names by number. */
    unsigned n_disks;
    char **disks;               /* paths, relative to the run; NULL at the end */
    /* With TT_FEATURE_FRAMES. */
    char *frames;               /* directory of the stores; as parent_path */
} TtManifest;

/*
 * tt_manifest_save: check @m as a reader would, then write it whole or not at
 * all: into @path.tmp, which is flushed and renamed.
 * Text members may be NULL (written as empty), except accel and cpu_type.
 * Bytes that are not UTF-8 are replaced. Returns TT_OK, or TT_ERR_LIMIT,
 * _FORMAT (a wrong value in @m; the sentence names it), _IO, _NOSPACE.
 */
TtStatus tt_manifest_save(const TtManifest *m, const char *path, TtDiag *diag);
/* The same into @io, which is empty; flushed. After a failure there may be a part
 * of it. */
TtStatus tt_manifest_write(const TtManifest *m, TtIo *io, TtDiag *diag);
/*
 * tt_manifest_load: @m is filled on TT_OK and empty otherwise (cleanup is
 * harmless in both cases). Text members are never NULL then.
 * Returns TT_OK, TT_ERR_IO, TT_ERR_FORMAT, TT_ERR_LIMIT, TT_ERR_VERSION.
 */
TtStatus tt_manifest_load(const char *path, TtManifest *m, TtDiag *diag);
/* It can be read, and has this one of TT_FEATURE_*. */
bool tt_manifest_has(const char *path, uint64_t feature);
/*
 * tt_manifest_check_unpacked: TT_ERR_IO when there is no manifest @path, but one under
 * the name that it has until its run is unpacked to the end. Loading says it, too.
 */
#define TT_MANIFEST_UNPACKING ".unpacking"      /* is after that name */
TtStatus tt_manifest_check_unpacked(const char *path, TtDiag *diag);
/* Parse from memory, for tests and fuzzing; @len <= TT_MANIFEST_BYTES_MAX. */
TtStatus tt_manifest_parse(const char *text, size_t len, TtManifest *m,
                           TtDiag *diag);
/*
 * tt_manifest_check_rules: may this version replay the run? Not part of loading:
 * a run of other rules can still be looked at.
 * @tlb_entries: of this version
 * Returns TT_OK, or TT_ERR_VERSION when @m has not TT_MANIFEST_RULES, but for
 * TT_RULE_WHOLE_STATE, or another TLB; the sentence names the version to use.
 * TT_ERR_INVALID: the run is scrubbed, and nothing can replay it.
 */
TtStatus tt_manifest_check_rules(const TtManifest *m, uint64_t tlb_entries,
                                 TtDiag *diag);
void tt_manifest_cleanup(TtManifest *m);

#endif
