/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Start of a branch: the VM of a full checkpoint goes on for real, and is
 * recorded into a run of its own. The run that it comes from is opened for
 * reading only.
 *
 *   option -> open parent -> disks (tt-branch-disks.c) -> machine made, reset
 *          -> is it the same machine? -> RAM, devices, vCPU -> VM first runs
 *          -> recording starts; of RAM it logs what differs from the checkpoint
 */
#include "qemu/osdep.h"
#include "branch/tt-branch.h"
#include "accel-tt/tt-vcpus.h"
#include "accel-tt/x86/tt-target.h"
#include "hw-tt/memory/tt-block.h"
#include "hw-tt/memory/tt-memory.h"
#include "hw-tt/state/tt-full.h"
#include "hw-tt/state/tt-parent.h"
#include "io/tt-base.h"
#include "pages/tt-pagestore.h"
#include "record/tt-record-listener.h"
#include "record/tt-record.h"
#include "record/tt-rundir.h"
#include "run/tt-cpstate.h"
#include "run/tt-fullstate.h"
#include "run/tt-manifest.h"
#include "run/tt-runlock.h"
#include "run/tt-runstore.h"
#include "session/tt-paths.h"
#include "session/tt-session.h"
#include "tt-branch-int.h"
#include "tt/hooks.h"
#include "qapi/error.h"
#include "hw/core/cpu.h"
#include "exec/memory.h"
#include "block/block.h"
#include "qemu/cutils.h"
#include "qemu/error-report.h"
#include "qemu/rcu.h"
#include "exec/ram_addr.h"
#include "exec/ramblock.h"
#include "exec/ramlist.h"
#include "hw/boards.h"
#include "system/runstate.h"
#include "system/system.h"

static struct {
    bool on, is_forced;
    bool has_begun;                 /* to record */
    bool had_dir;                   /* the run's directory was there before */
    bool is_made;                   /* it is to be discarded, if nothing begins */
    bool is_recorded;               /* the parent was, when it was opened */
    char *dir, *at;
    TtParent *parent;               /* until the recording has started */
    TtFullDesc desc;
} br;

void tt_branch_option(const char *dir, const char *at, bool is_forced)
{
    br.on = true;
    br.dir = tt_path_absolute(dir);
    br.at = g_strdup(at);
    br.is_forced = is_forced;
}

bool tt_is_branch(void)
{
    return br.on;
}

bool tt_branch_is_forced(void)
{
    return br.is_forced;
}

const TtFullDesc *tt_branch_disks_wanted(const char **parent_dir)
{
    *parent_dir = br.dir;
    return br.parent ? &br.desc : NULL;
}

/* ---- the parent ---- */

/* Two runs side by side may be moved together. */
static char *path_of_parent(void)
{
    g_autofree char *ours = g_path_get_dirname(tt_session.dir);
    g_autofree char *theirs = g_path_get_dirname(br.dir);
    g_autofree char *name = g_path_get_basename(br.dir);

    return strcmp(ours, theirs) ? g_strdup(br.dir) :
        g_build_filename("..", name, NULL);
}

void tt_branch_note_parent(void)
{
    TtManifest *m = &tt_session.manifest;

    m->features |= TT_FEATURE_PARENT;
    m->parent_path = path_of_parent();
    memcpy(m->parent_uuid, br.parent->manifest.uuid, 16);
    m->parent_checkpoint = br.parent->info.id;
    m->parent_pos = br.parent->info.pos;
}

/* Of a branch that never ran, nothing is to be found. */
static void discard(void)
{
    if (br.is_made && !br.has_begun && !tt_session.has_begun) {
        br.is_made = false;
        if (!tt_rundir_is_ours()) {
            return;                 /* whatever has that name now */
        }
        tt_branch_discard_disks();
        if (!br.had_dir) {
            rmdir(tt_session.dir);
        }
    }
}

static bool lies_within(const char *path, const char *dir)
{
    g_autofree char *whole = tt_path_absolute(dir);
    const char *rest;

    return path && strstart(path, whole, &rest) && (!*rest || *rest == '/');
}

static bool is_recorded(const char *dir)
{
    g_autofree char *manifest = g_build_filename(dir, "manifest", NULL);

    return g_file_test(manifest, G_FILE_TEST_EXISTS) && tt_runlock_is_held(dir);
}

/* A window that goes on moves past what the branch begins with. */
static void warn_of_window(void)
{
    if (br.parent->manifest.features & TT_FEATURE_WINDOW && br.is_recorded) {
        warn_report("tt: the window in '%s' is still being recorded: once it moves past "
                    "position %" PRIu64 ", this branch can no longer be replayed; branch "
                    "from a window saved with 'tt save' (in QMP tt-save)",
                    tt_printable(br.dir), br.parent->info.pos);
    }
}

/* A recorder looks for branches beside its run. Of one that is elsewhere it would let go
 * what that stands on: space of the disk that the branch reads gets other contents. */
static bool would_be_lost(Error **errp)
{
    g_autofree char *ours = g_path_get_dirname(tt_session.dir);
    g_autofree char *theirs = g_path_get_dirname(br.dir);
    struct stat a, b;

    if (!br.is_recorded || br.parent->manifest.features & TT_FEATURE_WINDOW ||
        (!stat(ours, &a) && !stat(theirs, &b) && a.st_dev == b.st_dev &&
         a.st_ino == b.st_ino)) {
        return false;
    }
    error_setg(errp, "'%s' is being recorded, and its recorder knows only branches beside it: "
               "give a directory there, such as to=%s/NAME", tt_printable(br.dir), theirs);
    return true;
}

bool tt_branch_open(Error **errp)
{
    TtDiag diag;

    if (!br.on) {
        return true;
    }
    br.is_recorded = is_recorded(br.dir);
    br.parent = tt_parent_open(br.dir, errp);
    if (!br.parent || !tt_parent_find(br.parent, br.at, errp)) {
        return false;
    }
    if (tt_fulldesc_find(br.parent->state.full, &br.desc, &diag) != TT_OK) {
        error_setg(errp, "%s", diag.text);
        return false;
    }
    if (lies_within(tt_session.dir, br.dir)) {
        error_setg(errp, "the branch would be inside its parent's directory, "
                   "which never changes: give another directory with to=");
        return false;
    }
    if (would_be_lost(errp)) {
        return false;
    }
    warn_of_window();
    br.had_dir = tt_session.dir && g_file_test(tt_session.dir, G_FILE_TEST_EXISTS);
    if (!tt_record_directory(errp)) {
        return false;
    }
    br.is_made = true;
    atexit(discard);
    tt_branch_note_parent();
    if (tt_runstore_check_name(tt_session.manifest.parent_path, &diag) != TT_OK) {
        error_setg(errp, "%s", diag.text);
        return false;
    }
    return true;
}

/* ---- is it the same machine? ---- */

static bool check_kind(Error **errp)
{
    TtFullDesc d = { 0 };
    TtManifest m = { 0 };
    const char *what;

    tt_full_describe(&d);
    tt_vcpus_find();
    tt_target_identity(first_cpu, &m);
    m.n_cpus = tt_vcpus_count();
    what = strcmp(d.machine, br.desc.machine) ? "machine type (-machine)" :
        m.n_cpus != br.parent->manifest.n_cpus ? "number of vCPUs (-smp)" :
        d.ram_bytes != br.desc.ram_bytes ? "amount of RAM (-m)" :
        strcmp(m.cpu_type, br.parent->manifest.cpu_type) ||
        m.n_cpu_words != br.parent->manifest.n_cpu_words ||
        memcmp(m.cpu_words, br.parent->manifest.cpu_words,
               m.n_cpu_words * sizeof(m.cpu_words[0])) ? "CPU (-cpu)" : NULL;
    if (what) {
        error_setg(errp, "the %s differs from that of the recorded machine: use "
                   "the same options (see 'tt info %s')", what, br.dir);
    }
    tt_fulldesc_cleanup(&d);
    tt_manifest_cleanup(&m);
    return !what;
}

/* ---- loading ---- */

static bool fill_ram(Error **errp)
{
    RAMBlock *rb;

    RCU_READ_LOCK_GUARD();
    QLIST_FOREACH_RCU(rb, &ram_list.blocks, next) {
        TtStatus s = tt_parent_fill(br.parent, rb->idstr, rb->used_length,
                                    rb->host);

        if (s < 0) {
            const TtDiag *said = tt_pagestore_read_error(br.parent->store);

            error_setg(errp, "the RAM of the checkpoint cannot be read: %s",
                       said ? said->text : tt_status_name(s));
            return false;
        }
        if (s == TT_OK) {
            memory_region_set_dirty(rb->mr, 0, rb->used_length);
        }
    }
    return true;
}

/* The parent's recorder may have moved pages since the store was opened: then
 * it is opened again, once. */
static bool load_ram(Error **errp)
{
    TtParent *again;

    if (fill_ram(NULL)) {
        return true;
    }
    again = tt_parent_open(br.dir, errp);
    if (!again || !tt_parent_choose(again, br.parent->info.id, errp)) {
        tt_parent_close(again);
        return false;
    }
    tt_parent_close(br.parent);
    br.parent = again;
    return fill_ram(errp);
}

/* The devices bring the state of the vCPUs, too; ours is the one that is
 * exact. */
static bool load_cpus(Error **errp)
{
    const TtCpState *s = &br.parent->state;
    int pending[TT_VCPUS_MAX];

    for (unsigned i = 0; i < tt_vcpus_count(); i++) {
        pending[i] = tt_vcpus_at(i)->interrupt_request;
    }
    if (!tt_vcpus_load(s->cpu.data, s->cpu.len, s->halted, errp)) {
        return false;
    }
    for (unsigned i = 0; i < tt_vcpus_count(); i++) {
        tt_vcpus_at(i)->interrupt_request = pending[i];
    }
    return true;
}

static bool load_state(Error **errp)
{
    bool ok;

    bdrv_drain_all_begin();
    qemu_system_reset(SHUTDOWN_CAUSE_SNAPSHOT_LOAD);
    ok = load_ram(errp) && tt_full_load(br.parent->state.full, errp) &&
        load_cpus(errp);
    bdrv_drain_all_end();
    return ok;
}

#define WAIT_STEP_MS    10
#define WAIT_MS         (30 * 1000)     /* the recorder's disk may be slow, or full */

/* What the parent's recorder has decided before it could see us is in its files then. */
static bool wait_for_decision(Error **errp)
{
    for (unsigned i = 0; tt_runlock_is_deciding(br.dir); i++) {
        if (i == WAIT_MS / WAIT_STEP_MS) {
            error_setg(errp, "'%s' is being recorded, and its recorder has been deleting "
                       "checkpoints for %d s, since its disk is slow or full: try again "
                       "later", tt_printable(br.dir), WAIT_MS / 1000);
            return false;
        }
        g_usleep(WAIT_STEP_MS * 1000);
    }
    return true;
}

/* Its recorder knows of us by our manifest, which is there from here on, although nothing is
 * recorded yet. Until now it may have let go what we have opened; see has_branch in
 * tt-cpdisks.c for why one of us sees the other. */
static bool check_parent(Error **errp)
{
    uint32_t id = br.parent->info.id;
    TtParent *now;
    bool ok;

    if (!br.is_recorded) {
        return true;
    }
    if (!tt_record_announce(errp) || !wait_for_decision(errp)) {
        return false;
    }
    now = tt_parent_open(br.dir, errp);
    ok = now && tt_parent_choose(now, id, errp);
    if (ok && !(now->info.flags & TT_CHECKPOINT_FULL)) {
        error_setg(errp, "checkpoint %" PRIu32 " of '%s' is no full checkpoint any more: "
                   "start from a later one", id, tt_printable(br.dir));
        ok = false;
    }
    tt_parent_close(now);
    return ok && tt_branch_check_versions(errp);
}

static bool load(Error **errp)
{
    return check_kind(errp) && tt_branch_check_blocks(br.parent, br.dir, errp) &&
        tt_branch_check_disks(errp) && check_parent(errp) && load_state(errp);
}

void tt_machine_made(void)
{
    Error *err = NULL;

    if (!br.on) {
        return;
    }
    if (!load(&err)) {
        tt_record_close();
        error_reportf_err(err, "-tt branch: ");
        exit(1);
    }
    tt_branch_take_frames(br.dir, br.desc.name, br.parent->info.pos);
    error_printf("tt: recording into %s, a branch of %s from position %" PRIu64
                 "\n", tt_printable(tt_session.dir), tt_printable(br.dir),
                 br.parent->info.pos);
}

/* ---- in a process that recorded until now ---- */

void tt_branch_drop(void)
{
    tt_parent_close(br.parent);
    br.parent = NULL;
    tt_fulldesc_cleanup(&br.desc);
}

bool tt_branch_choose(const char *dir, uint32_t id, Error **errp)
{
    TtDiag diag;

    g_free(br.dir);
    br.dir = tt_path_absolute(dir);
    br.is_forced = false;
    br.parent = tt_parent_open(br.dir, errp);
    if (!br.parent || !tt_parent_choose(br.parent, id, errp)) {
        tt_branch_drop();
        return false;
    }
    if (tt_fulldesc_find(br.parent->state.full, &br.desc, &diag) != TT_OK) {
        error_setg(errp, "%s", diag.text);
    } else if (check_kind(errp) && tt_branch_check_blocks(br.parent, br.dir, errp) &&
               tt_branch_disks_fit(&br.desc, br.dir, errp)) {
        return true;
    }
    tt_branch_drop();
    return false;
}

bool tt_branch_load(bool *has_changed, Error **errp)
{
    if (!tt_disks_swap(&br.desc, br.dir, has_changed, errp)) {
        return false;
    }
    *has_changed = true;
    return load_state(errp);
}

uint64_t tt_branch_pos(void)
{
    return br.parent->info.pos;
}

/* ---- the recording ---- */

static unsigned long *compare(const TtBlock *b)
{
    return br.parent ? tt_parent_compare(br.parent, b) : NULL;
}

static bool started(CPUState *cpu, Error **errp)
{
    if (br.parent) {
        br.has_begun = true;
        tt_parent_close(br.parent);
        br.parent = NULL;
        tt_fulldesc_cleanup(&br.desc);
    }
    return true;
}

void tt_branch_init(void)
{
    static const TtRecordListener listener = {
        .started = started, .removing = discard,
    };

    tt_record_listen(&listener);
    tt_memory_on_compare(compare);
}
