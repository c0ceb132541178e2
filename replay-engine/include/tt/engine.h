/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the parts of the glue know of each other. Needs QEMU's headers; no
 * patched upstream file includes it (those include tt/hooks.h only).
 *
 * Context, unless said otherwise: the BQL is held. While -tt is on the BQL is
 * the execution token: whoever holds it knows that the vCPU stands between two
 * instructions (or is inside a device call of its own), so positions are exact.
 */
#ifndef TT_ENGINE_H
#define TT_ENGINE_H

#include "qemu/osdep.h"
#include "qapi/error.h"
#include "exec/memory.h"
#include "hw/core/cpu.h"
#include "tt/hooks.h"
#include "tt/cpstate.h"
#include "tt/log.h"
#include "tt/manifest.h"
#include "tt/sched.h"

/* Positions between two flushes of the TLB, in the recording and in every
 * replay (hazard 1). 2^23 is some 10 ms of guest work; a flush costs
 * some 50 us of refills (2026-11). */
#define TT_FENCE_INTERVAL (1ull << 23)

/* Positions between two digests of the vCPUs, as far as fences. 2^20 of them cost
 * 4 % of a recording (2026-11). */
#define TT_CHECK_INTERVAL (1ull << 23)
#define TT_CHECK_INTERVAL_MIN 1000

#define TT_CHECKPOINT_INTERVAL_MS 25000

/* ---- the one engine of this process ---- */
typedef struct TtEngine {
    const char *dir;            /* the run directory; interned, since query-tt
                                   reads it without any lock */
    TtManifest manifest;
    bool live;                  /* events are recorded or replayed now */
    bool gave_up;               /* the recording ended by itself, here: */
    uint64_t gave_up_at;
    bool finished;              /* the end of the run has been dealt with */
    uint64_t pos;               /* position; exact while the vCPU is outside
                                   cpu_exec, else see tt_position() */
    uint64_t fence_next;        /* position of the next TLB flush */
    uint64_t check_next;        /* record: of the next digest between fences */
    uint64_t check_interval;    /* record: positions between two digests */
    uint64_t step_to;           /* gdb's single step ends here, or UINT64_MAX */
    uint64_t output_hash;       /* over all port and MMIO writes so far */
    unsigned device_depth;      /* the vCPU is inside a device call */
    bool acknowledging;         /* the interrupt controller answers the vCPU */
    bool at_end_exit;           /* replay: leave when the end is reached */
    uint64_t checkpoint_bytes;  /* replay: memory for checkpoints */
    uint64_t checkpoint_interval_ms;    /* record: 0 for none */
    uint64_t sync_ms;           /* record: the log is flushed to disk so often; 0:
                                   at its end */
    bool stop_on_error;         /* record: the VM waits for a disk that fails */
    bool chaos;                 /* record: who runs when is left to chance */
    uint64_t max_size_bytes;    /* record: cap of the log, 0 for none */
    uint64_t window_ns;         /* record: keep so much, in time of the VM's
                                   clock; 0: all */
    bool save_on_panic;         /* record: with a window */
    uint64_t unlogged;          /* record, for tests: so many writes of devices
                                   to RAM until one is not logged; 0: all are */
    uint64_t events;            /* recorded, or replayed so far */
    bool diverged;              /* the replay cannot go on from here: it is not
                                   exact, or, if damaged is set as well, ... */
    bool damaged;               /* ... the log cannot be read */
    bool torn;                  /* replay: the recorder was cut off, or ... */
    bool growing;               /* ... it was still at work when we began */
    char *divergence;           /* one sentence */
    int last_stop;              /* TtStopReason of the last stop */
} TtEngine;

extern TtEngine tt;

/* The position now: O(1), exact under the BQL. */
uint64_t tt_position(void);
/* Next multiple of the fence interval after @pos. */
uint64_t tt_next_fence(uint64_t pos);

static inline void tt_fold_output(const TtEvent *ev)
{
    uint64_t h = tt.output_hash;

    h = (h ^ (ev->addr << 8 ^ ev->kind << 4 ^ ev->size)) * 0x9e3779b97f4a7c15u;
    h ^= h >> 32;
    h = (h ^ ev->val ^ ev->pos << 32) * 0xc2b2ae3d27d4eb4fu;
    tt.output_hash = h ^ h >> 29;
}

/* ---- accel-tt: instruction fetch ---- */
void tt_fetch_start(void);      /* before the vCPU runs */
void tt_fetch_stop(void);
void tt_fetch_turn_to(CPUState *cpu);   /* who runs from now on */

/* ---- accel-tt: inputs ---- */
void tt_inputs_start(void);     /* while the clock stands, or has not begun */

/* ---- accel-tt: token ---- */
void tt_token_start(void);      /* others queue from now on */
void tt_token_stop(void);
void tt_token_adopt(void);      /* the calling thread is the vCPU's, BQL held */
void tt_token_disown(void);     /* no longer */
bool tt_token_is_mine(void);
/*
 * Between two runs of guest code: whoever asked for the token gets it first.
 * @before is called once if the token is given away. Returns true when others
 * already wait again: run a short slice only.
 */
bool tt_token_yield(void (*before)(void));
/* @slice: the budget is short, do not look at who waits */
void tt_token_enter_guest(bool slice);
void tt_token_leave_guest(void);
void tt_token_kick(void);               /* make the vCPU leave guest code */

/* ---- accel-tt: vCPU ---- */
void tt_vcpu_arm(CPUState *cpu);        /* budget up to the next stop */
/* tt_mode has changed and the vCPU is stopped: nothing that was made for the
 * mode before is used again. */
void tt_vcpu_mode_changed(void);
/* Ends a turn of the vCPU from inside a helper; does not return. */
void G_NORETURN tt_vcpu_leave(CPUState *cpu);
void tt_vcpu_wake(void);                /* look at what there is to do */
void tt_vcpu_plan_step(void);           /* another vCPU's turn has come */
bool tt_vcpu_is_ours(void);             /* its thread is in tt_vcpu_loop */

/* ---- accel-tt: shifts of several vCPUs that are recorded ---- */
bool tt_vcpu_has_duties(CPUState *cpu); /* to stop, or work is queued */
bool tt_shift_choose(void);             /* who runs next; false: nobody can */
uint64_t tt_shift_end(void);            /* the position at which others are due */
void tt_shift_note(bool yielded);       /* cpu_exec was left: for others? */

/* ---- accel-tt: gdb's watchpoints ---- */
/* Around a run of guest code that no stop of gdb's may end. */
void tt_watchpoints_hide(CPUState *cpu);
void tt_watchpoints_restore(CPUState *cpu);
void tt_watchpoints_arm(CPUState *cpu);         /* they count from now on */

/* ---- accel-tt: branch traces (tt/trace.h) ---- */
typedef struct TtTraced {
    const char *path;           /* interned */
    uint64_t from, to;          /* positions */
    uint64_t branches, bytes;
} TtTraced;

/* From position @from on, or now, up to @to, into a file that is made. One at a
 * time. */
bool tt_trace_begin(const char *path, uint64_t from, uint64_t to,
                    Error **errp);
/* ... up to here. False: it is not whole, or there is none; *errp says why. */
bool tt_trace_end(TtTraced *t, Error **errp);
bool tt_trace_has_failed(void);         /* has that been so? */
/* The same, if there is one, and says on stderr what came of it. Also where the
 * history jumps: a trace is of one piece. */
void tt_trace_end_and_tell(void);
/* Before guest code runs, if tt_trace_is_on: begins or ends what is due. */
void tt_trace_turn(void);
uint64_t tt_trace_limit(void);          /* run no further than this */

/* ---- accel-tt: the vCPUs together ---- */
#define TT_VCPUS_MAX 8

void tt_vcpus_find(void);               /* all of them exist */
unsigned tt_vcpus_count(void);
CPUState *tt_vcpus_at(unsigned index);
CPUState *tt_vcpu(void);                /* who runs, or NULL before that */
void tt_vcpus_turn_to(CPUState *cpu);   /* outside cpu_exec */
uint64_t tt_vcpus_digest(void);
void tt_vcpus_flush(void);              /* the TLBs */
void tt_vcpus_stop_for_gdb(void);       /* all stand; who runs is at the stop */
void tt_vcpus_do_work(void);            /* what is queued: vCPU thread */
/* @halted: of one vCPU; the state of several has those flags in it. */
GByteArray *tt_vcpus_save(void);
bool tt_vcpus_load(const uint8_t *data, size_t len, bool halted, Error **errp);

/* ---- accel-tt: whose turn it is inside the guest ---- */
typedef struct TtLinuxLayout {
    uint64_t current;           /* of the pointer to the task, from GS's base */
    uint64_t pid, name;         /* in that task: of the process, 16 letters */
} TtLinuxLayout;

typedef struct TtProcess {
    uint64_t root;              /* of the page tables; 0: there are none */
    int64_t pid;                /* -1: not known */
    uint8_t name[16];           /* ended by 0 */
} TtProcess;

void tt_process_set_layout(const TtLinuxLayout *l);
const TtLinuxLayout *tt_process_layout(void);   /* NULL: not known */
/* Some 2 us; changes nothing. Also while the vCPU accesses memory. */
void tt_process_now(CPUState *cpu, TtProcess *p);

/* ---- accel-tt: target (x86) ---- */
void tt_target_identity(CPUState *cpu, TtManifest *m);
bool tt_target_adopt_identity(CPUState *cpu, const TtManifest *m,
                              Error **errp);
GByteArray *tt_target_save(CPUState *cpu);      /* halted flag not included */
bool tt_target_load(CPUState *cpu, const uint8_t *data, size_t len,
                    Error **errp);
uint64_t tt_target_digest(CPUState *cpu);
/* Hash of everything that code outside the vCPU could change. ~1 us. */
uint64_t tt_target_fingerprint(CPUState *cpu);
/* Turns what devices hang on to the vCPU (interrupt requests, APIC) to that of the
 * other world, tt-past.c; called twice it does nothing. */
void tt_target_swap_links(void);
void tt_target_forget_links(void);      /* a new past has none */
void tt_target_flags(CPUState *cpu, uint64_t flags[4]); /* by TT_FLAG_* */
void tt_target_set_flag(CPUState *cpu, unsigned flag, uint64_t val);
/* Inside cpu_exec; may longjmp as the recorded delivery did. */
bool tt_target_deliver(CPUState *cpu, uint64_t type, uint64_t vector);
uint64_t tt_target_intr_class(int cpu_interrupt_mask);
bool tt_target_intercepts(CPUState *cpu, uint64_t intr_class);

/* ---- hw-tt: memory ---- */
typedef struct TtBlock {
    void *ram_block;            /* RAMBlock; compared, not followed */
    MemoryRegion *mr;
    uint8_t *host;
    uint64_t size_bytes;
    uint32_t flags;             /* TT_BLOCK_* */
    uint64_t first_page;        /* its number in the page store */
    bool is_adopted;            /* its device is gone, the RAM is ours */
    char name[TT_BLOCK_NAME_MAX + 1];
} TtBlock;

unsigned tt_memory_n_blocks(void);
TtBlock *tt_memory_block(unsigned index);
uint64_t tt_memory_n_pages(void);
/* The block that @host lies in, and where; UINT32_MAX: in none of the run's. */
uint32_t tt_memory_locate(void *host, uint64_t *offset);
void tt_memory_record_start(CPUState *cpu);     /* logs map and contents */
void tt_memory_record_stop(void);
uint64_t tt_memory_digest(void);        /* 0.1 ms per MiB; holds the token */
/* Replay: carry out one event. False: the log is inconsistent, *errp. */
bool tt_memory_apply(const TtEvent *ev, Error **errp);
/* Checkpoints: the map as two event payloads, and how many blocks there are. */
typedef struct TtMapState {
    GByteArray *sections[2];
    unsigned n_blocks;
} TtMapState;
void tt_memory_map_save(TtMapState *ms);
void tt_memory_map_restore(const TtMapState *ms);
void tt_memory_map_free(TtMapState *ms);
/* For a stored checkpoint: names and sizes of the blocks, as bytes. */
GByteArray *tt_memory_blocks_save(void);
/* Map and blocks of one; blocks that are not there yet are made. The bytes may be
 * hostile. */
bool tt_memory_map_load(TtMapState *ms, const TtCpState *s, Error **errp);
/* Pages written since the last call (or since start), ascending. */
uint64_t *tt_memory_collect_dirty(size_t *n);
size_t tt_memory_count_dirty(void);     /* collects none; 1 us per 100 MiB */
void tt_memory_mark_dirty(uint64_t page);
void tt_memory_all_dirty(void);     /* nobody watched until now */
const void *tt_memory_page(void *opaque, uint64_t page);
void tt_memory_put_page(void *opaque, uint64_t page, const void *bytes);

/* Shows the blocks of the other world: tt-past.c. */
void tt_memory_swap(void);
/* The vCPU sees the VM's own memory again; that of the past is given back. */
void tt_memory_leave_past(void);

/* ---- hw-tt: page guarding (tt-guard.c) ---- */
void tt_guard_option(bool on);
bool tt_guard_start(Error **errp);      /* before blocks are added; if wanted */
void tt_guard_stop(void);               /* says what was found */
void tt_guard_add(void *ram_block);     /* TLBs are flushed before guest code runs */
void tt_guard_drop(void *ram_block);    /* it goes away */
/* This range, as it is now, is in the log. */
void tt_guard_logged(const void *ram_block, uint64_t offset, uint64_t len);
/* Before guest code goes on, or a device call begins: what was written from outside
 * and not logged is told. */
void tt_guard_settle(void);
void tt_guard_discarded(const void *ram_block, uint64_t start, uint64_t len);

/* Is a network backend served by the host kernel? */
bool tt_type_is_unrecordable(const char *name);     /* a device's type */
bool tt_net_has_vhost(void);
void tt_watch_devices(void);        /* those that are plugged in later */
void tt_screen_start(void);         /* the console of a replay */

/* ---- hw-tt: what a virtio-gpu shows. BQL, vCPU outside guest code ---- */
/* Recording: all of it into the log, for a replay that begins here. Compares the
 * pictures with RAM: 1 ms for a screen of 4 MB. */
void tt_gpu_note_all(void);
/* Replay: a TT_EV_SCREEN was passed. What it makes no sense of it passes over. */
void tt_gpu_passed(const TtEvent *ev);
GByteArray *tt_gpu_save(void);          /* of a checkpoint; NULL: nothing */
void tt_gpu_restore(const GByteArray *saved);   /* RAM is that of then */
struct QemuConsole;
bool tt_gpu_draw(struct QemuConsole *con);      /* false: it shows nothing */
bool tt_gpu_is_there(void);             /* a note was passed */
void tt_gpu_last_size(int *width, int *height); /* unchanged: of nothing */

/* ---- replay-engine: recorder ---- */
/*
 * open -> start -> finish -> close. A failure of open or start is followed by
 * close; what was made on disk is removed again.
 */
bool tt_record_open(Error **errp);              /* directory and buffers */
bool tt_record_start(Error **errp);     /* vCPUs out of cpu_exec */
void tt_record_event(TtEvent *ev);              /* pos, nested are filled in */
void tt_record_fence(CPUState *cpu);
void tt_record_check(void);             /* a digest; vCPU in cpu_exec */
void tt_record_finish(unsigned why);            /* may take seconds */
bool tt_record_is_whole(void);                  /* after finish */
bool tt_record_is_gone(void);           /* after finish: deleted by somebody */
void tt_record_close(void);                     /* ready for another open */
void tt_record_resync(void);            /* before guest code runs */
void tt_record_reset(CPUState *cpu);            /* it was reset */
void tt_record_release(void);                   /* the token is given away */
/* The TLB is empty here, in every replay too: logs the vCPU's state, so that a
 * replay can begin at this position. The vCPU is outside cpu_exec; the position
 * moves by one. */
void tt_record_renew(void);
/* The vCPU is as the log has it, whatever was done to it; the token is given away.
 */
void tt_record_took_note(void);
/* Waits until all events so far are in the file. */
bool tt_record_seal(Error **errp);
/* Why the recording waits and the VM with it, a sentence; NULL: it does not. */
const char *tt_stall_why(void);
/* Ends the part of the log here: *@seq is the first segment behind it. There is an
 * event since the last time. */
bool tt_record_cut(uint64_t *seq, Error **errp);
/* The log of a window is to be no longer than this; 0: as it comes. */
void tt_record_limit_segments(uint64_t log_bytes);
/* A window's log would soon be longer than its limit. */
bool tt_record_is_tight(void);
/* Where it ends, if it ended here: sooner when not all of it could be written. */
uint64_t tt_record_end(void);
uint64_t tt_record_ns(void);            /* host time since the run began */
uint64_t tt_record_bytes(void);         /* the log on disk */
bool tt_record_has_begun(void);

/* ---- replay-engine: a window that moves (last=) ---- */
uint64_t tt_flight_start(void);         /* where it begins; any thread. 0 without */
/*
 * tt_save_begin: keep the window as a run of its own
 * @name: that is its directory, behind the recording's and a '-', and a mark here
 *        unless it @is_marked; with a slash, a directory. NULL: save-1, ...
 * @done: called in the main loop, with the directory, and with a sentence when it
 *        failed; NULL: nobody waits
 * Main thread. Milliseconds; copying goes on in a thread of ours, and the VM runs, but
 * for a log that reaches max-size: there are no checkpoints until it is done.
 */
typedef void TtSaveDone(void *opaque, const char *dir, const char *why);
bool tt_save_begin(const char *name, bool is_marked, TtSaveDone *done,
                   void *opaque, Error **errp);

/* ---- replay-engine: when something goes wrong in the guest ---- */
extern const char tt_panic_pattern_default[];
extern const char tt_save_on_panic_help[];
/* A regular expression for lines of the console; "": none are looked at. */
bool tt_trouble_set_pattern(const char *text, Error **errp);
void tt_trouble_console(uint32_t port, uint8_t byte);   /* vCPU wrote it */
void tt_trouble_settle(void);           /* what was met and is not marked yet */
void tt_trouble_forget(void);           /* the recording has ended */

/* ---- replay-engine: attach and detach ---- */
typedef struct TtRecordOptions {
    const char *dir;                /* NULL: a fresh one where we are */
    uint64_t max_size_bytes;        /* 0: no cap */
    uint64_t checkpoint_interval_ms;        /* 0: none */
    bool stop_on_error;             /* the VM waits for a disk that fails */
    uint64_t window_ns;             /* 0: keep all */
    bool save_on_panic;
    const char *panic_pattern;      /* NULL: the default */
    bool guard;                     /* find writes to RAM that are not logged */
} TtRecordOptions;

/* Main thread. The VM is stopped for the while and goes on afterwards if it ran. */
bool tt_attach(const TtRecordOptions *opt, Error **errp);
/* Where the recording that has ended stood. @dir stays valid. */
typedef struct TtEnded {
    const char *dir;
    uint64_t pos, events, bytes;
    bool whole;                     /* all of it is on disk */
} TtEnded;
bool tt_detach(TtEnded *ended, Error **errp);

/* ---- replay-engine: the past, in the process that records ---- */
/*
 * Main thread, not in a coroutine, the VM is stopped. enter: the start of the
 * run is shown, and movements begin there; the present stays as it is. leave: the
 * present is shown again; `cont` goes on recording. One to two tenths of a
 * second, and as much host memory again as the guest has RAM.
 */
bool tt_past_enter(Error **errp);
void tt_past_leave(void);
/* In the past: where the guest stood, before its vCPUs' state was logged for this. */
uint64_t tt_past_stand(void);
/* Turns the engine to the world that is not shown, and back: BQL. */
void tt_past_swap(void);

/* ---- replay-engine: names of files (tt-paths.c) ---- */
/* Where a QEMU was started that has left it since, a daemonized one; else NULL. */
const char *tt_start_directory(void);
/* Of a name that is relative, from there or from where we are. g_free. */
char *tt_path_absolute(const char *path);
/* Would @path, which need not exist, lie in the directory of a run? */
bool tt_path_is_outside(const char *path, Error **errp);
/* Control characters are '?' in it: names go to terminals. Interned. */
const char *tt_printable(const char *text);

/* The run directory: made, or fit to record into. Again: nothing to do. */
bool tt_record_directory(Error **errp);

/* ---- replay-engine: branches (-tt branch) ---- */
/* What the option says; @dir: the run to start in. */
void tt_branch_option(const char *dir, const char *at, bool is_forced);
bool tt_is_branch(void);
/* All options are read; no device or disk is there yet. */
bool tt_branch_open(Error **errp);
/* Recording starts: pages of @b that are not as in the parent's checkpoint (g_free);
 * NULL: it has no such block, or this is no branch. */
unsigned long *tt_branch_compare(const TtBlock *b);
void tt_branch_begun(void);             /* ... has started */
/* Replay: @b's contents become those in the parent's checkpoint. */
bool tt_replay_fill(TtBlock *b, Error **errp);

/* ---- replay-engine: the engine of this process ---- */
/* Whether the machine as it is now can be recorded. */
bool tt_can_record(Error **errp);
bool tt_block_migration(Error **errp);
void tt_unblock_migration(void);
void tt_describe_recording(void);               /* fills in tt.manifest */
void tt_set_dir(const char *dir);               /* NULL or "": none given */
/* False: no such interval, and nothing is said; see tt_interval_help. */
bool tt_interval_parse(double seconds, uint64_t *ms);
extern const char tt_interval_help[];
/* Time with a unit, as of last=; false: it is none, *errp. */
bool tt_window_parse(const char *text, uint64_t *ns, Error **errp);
bool tt_window_fits(uint64_t ns, uint64_t interval_ms, Error **errp);

/* ---- replay-engine: replayer ---- */
bool tt_replay_open(Error **errp);
void tt_replay_start(CPUState *cpu);            /* vCPU thread */
/* Before each run of guest code: applies what is due, moves the travel on.
 * False: stand still. */
bool tt_replay_prepare(void);
uint64_t tt_replay_limit(void);         /* run no further than this */
bool tt_replay_boundary(CPUState *cpu); /* tt_boundary's replay half */
/* cpu_exec returned @why. True: dealt with, no stop to report to gdb. */
bool tt_replay_left(CPUState *cpu, int why);
/* A synchronous event: checked against the log; *ev takes the logged values.*/
void tt_replay_sync(TtEvent *ev);
TtSched *tt_replay_sched(void);
/* The replay cannot go on: it diverged; the log cannot be read. */
void tt_replay_report(const char *fmt, ...) G_GNUC_PRINTF(1, 2);
void tt_replay_damaged(const TtDiag *diag);
/* Why it cannot go on, as a TtStopReason. */
int tt_replay_trouble(void);
/* The release of QEMU that recorded it, for people; NULL: this one. To be freed. */
char *tt_replay_other_release(void);
/* Can there be pictures of the screen? If not, it is said. Once, at the start. */
bool tt_replay_may_show(void);
uint64_t tt_replay_first(void);         /* 0, or where a window begins */
uint64_t tt_replay_end(void);
/* The log of a recording that goes on: its end is at @pos. */
void tt_replay_set_end(uint64_t pos);
void tt_replay_close(void);
uint64_t tt_replay_digests(void);       /* verified so far */
uint64_t tt_replay_last_equal(void);    /* position of the last digest that was
                                           as recorded, before this one; 0 */
void tt_replay_console(uint32_t port, uint32_t val, unsigned size);
/* Marks of the log and of RUN/marks. */
typedef void TtMarkSeen(void *opaque, const char *name, uint64_t pos);
/* All; the last of a name counts. Names of a damaged run may be any text. Reads
 * the whole log. */
void tt_mark_each(TtMarkSeen *seen, void *opaque);
bool tt_mark_check(const char *name, Error **errp);     /* may it be a name? */
/* The same in a run that is not replayed here. */
bool tt_mark_find_in(const char *dir, const char *name, uint64_t *pos,
                     Error **errp);
bool tt_mark_find(const char *name, uint64_t *pos, Error **errp);
bool tt_mark_add(const char *name, uint64_t *pos, Error **errp);
TtLogReader *tt_replay_reader(void);

/* ---- replay-engine: travel ---- */
typedef void TtTravelDone(void *opaque, uint64_t pos, int reason);

void tt_travel_init(CPUState *cpu);             /* first checkpoint */
void tt_travel_close(void);                     /* no movement is under way */
bool tt_travel_active(void);
bool tt_travel_is_blind(void);          /* no stop of gdb's counts now */
bool tt_travel_steps_over(void);        /* the breakpoint here does not */
/* A step backwards compares the bytes of watchpoints up to this size, for gdb. */
#define TT_WATCH_COMPARED 4096
/*
 * Post a movement; the vCPU thread carries it out. @done is called there. A trap
 * comes together with its instruction: a movement to the position between the
 * two ends behind them; one back from @from, by 1 to @from positions, ends before
 * them. (@from is where the user stands: a past that is entered begins at 0.)
 */
bool tt_travel_goto(uint64_t target, TtTravelDone *done, void *opaque,
                    Error **errp);
bool tt_travel_back(uint64_t from, uint64_t count, TtTravelDone *done,
                    void *opaque, Error **errp);
/* Run forward to @target and skip nothing, so that every digest is compared. */
bool tt_travel_run(uint64_t target, TtTravelDone *done, void *opaque,
                   Error **errp);
bool tt_travel_reverse(bool step, TtTravelDone *done, void *opaque,
                       Error **errp);
/*
 * Scan @from..@to for stops, oldest first, and come back. @hit is called for each
 * of gdb's breakpoints met there, in the vCPU thread; it says false when it has
 * enough.
 */
typedef bool TtTravelHit(void *opaque, uint64_t pos, uint64_t pc);
bool tt_travel_survey(uint64_t from, uint64_t to, TtTravelHit *hit,
                      TtTravelDone *done, void *opaque, Error **errp);
void tt_travel_switches(CPUState *from);        /* its turn ends here */
void tt_travel_interrupt(void);         /* any thread */
void tt_travel_abort(void);             /* the vCPU does not run */
void tt_travel_end(void);               /* nor will it ever again */
/* Of the movement under way, in positions; 0 of 0: there is none. */
void tt_travel_progress(uint64_t *done, uint64_t *total);
uint64_t tt_travel_stop_at(void);       /* UINT64_MAX: nowhere */
bool tt_travel_is_pending(void);        /* the next step is due here */
bool tt_travel_advance(CPUState *cpu);  /* take it; true: run on */
/* A stop fired at @pos; @wp: the watchpoint it was, or NULL. */
void tt_travel_hit(uint64_t pos, CPUWatchpoint *wp);
/* ---- replay-engine: what a search may leave out ---- */
void tt_skip_init(void);
void tt_skip_close(void);
/* The VM is about to become another one; is the one of a checkpoint. */
void tt_skip_leave(void);
void tt_skip_restored(void);
void tt_skip_fence(void);
/* A TtMayHit: can a stop of gdb's fire there? */
bool tt_skip_may_hit(void *opaque, uint64_t from, uint64_t to);

void tt_travel_ended(int reason);       /* end of log, divergence */
void tt_travel_fence(CPUState *cpu);    /* a good place for a checkpoint */
unsigned tt_points_count(void);

/* ---- replay-engine: a trace of a part of the run ---- */
/* "all", FROM- or FROM-TO, which is above FROM. False: something else. */
bool tt_part_parse(const char *text, uint64_t *from, uint64_t *to);
/* @part: NULL for all. False: no such part. */
bool tt_trace_option(const char *path, const char *part);
bool tt_trace_record_start(Error **errp);       /* if asked for */
bool tt_retrace_is_on(void);            /* a replay, which then ends by itself */
void tt_retrace_begin(void);            /* vCPU thread, at its start */

/* ---- replay-engine: verification, interval by interval ---- */
/* What stands behind verify=: all, FROM-, FROM-TO. False: something else. */
bool tt_verify_option(const char *text);
bool tt_verify_is_on(void);
bool tt_verify_is_restoring(void);      /* what it finds is its own to say */
/* vCPU thread, at the start of the replay. The process ends when it is done. */
void tt_verify_begin(void);
/* A digest differs, @why: noted, and the replay goes on. False: it is to end. */
bool tt_verify_goes_on(const char *why);

/* ---- checkpoints, for the user ---- */
typedef struct TtPoint {
    uint32_t id;
    uint64_t pos, pages;            /* pages: changed since the one before */
    bool pinned;                    /* made by the user: never thinned */
    bool full;                      /* a branch can start there */
    bool stored;                    /* the recorder made it; then also: */
    uint64_t host_ns;               /* host time since the run began */
    uint64_t bytes;                 /* on disk */
} TtPoint;

/* Is there anything to travel in? */
bool tt_travel_is_possible(Error **errp);
/* Post the making of one for the present position; tt_travel_pinned says its id
 * when that is done (0: it could not be made). */
bool tt_travel_pin(TtTravelDone *done, void *opaque, Error **errp);
uint32_t tt_travel_pinned(void);
bool tt_travel_delete(uint64_t id, Error **errp);
/* Of TtPoint, by position; the caller frees it. */
GArray *tt_points_list(void);

/* Is there a position to mark or to look at now? False: *errp says why not. */
bool tt_is_live(Error **errp);

/* ---- replay-engine/glue: checkpoints of a recording ---- */
/* start: the initial state is logged; fence: one was just made; turn: cpu_exec
 * was left (these three: vCPU out of, in, and out of cpu_exec); finish: the
 * recording ends. */
bool tt_keeper_start(CPUState *cpu, Error **errp);
void tt_keeper_fence(CPUState *cpu);
void tt_keeper_turn(CPUState *cpu);
void tt_keeper_finish(void);
/* The log of a window has grown: is it time for a checkpoint, fence or not? */
void tt_keeper_urge(void);
void tt_keeper_tell(void);              /* what went wrong, if not told yet */
/* Waits until what was taken is in the files. */
void tt_keeper_settle(void);
/*
 * tt_keeper_add: a checkpoint of the present position, which stays until it is
 * deleted
 * @name: a mark for the position, or NULL
 * @full: not NULL: with devices and disks, so that a branch can start there; gets
 *        a line for each disk whose writes go to another file from now on
 * @id: its number
 * Main thread, no coroutine. The VM is stopped for as long as it takes to copy
 * what changed, and goes on if it ran. Then the call waits, with the BQL
 * released, until the checkpoint is on disk. False: *errp says why there is
 * none.
 */
bool tt_keeper_add(const char *name, GString *full, uint32_t *id,
                   Error **errp);
/* Main thread. Waits in the same way. */
bool tt_keeper_delete(uint64_t id, Error **errp);
GArray *tt_keeper_list(void);           /* of TtPoint, by position */

typedef struct TtKeeperStats {
    uint64_t count, bytes;              /* checkpoints; of the store on disk */
    uint64_t taken;                     /* since the recording began */
    /* The VM stood; the first is not among them: with it RAM is logged. */
    uint64_t pause_ns_last, pause_pages_last;
    uint64_t pause_ns_most, pause_pages_most;
} TtKeeperStats;

TtKeeperStats tt_keeper_stats(void);    /* any thread */
bool tt_keeper_is_on(void);             /* checkpoints are made by themselves */
/* The log's writer found the disk full: the checkpoints go. False: there is
 * nothing left to give. */
bool tt_keeper_make_room(void *opaque);

/* Where the log goes on: the place of the next event. */
void tt_record_place(uint64_t *segment, uint32_t *index);
/* ---- stopping ---- */
/* The VM stands at tt.pos; @reason is a TtStopReason. vCPU thread. */
void tt_stop_vm(int reason);
const char *tt_stop_name(int reason);
/* ---- gdbstub-tt ---- */
/* Has a gdb that waits for the monitor's command left it? BQL */
bool tt_gdb_gave_up(void);
bool tt_gdb_wanted(void);               /* -gdb or -s was given */
void tt_gdb_start(void);                /* -tt is on; before there is a vCPU */

/* ---- monitor-cmds ---- */
void tt_event_stopped(uint64_t pos, int reason);
void tt_event_diverged(uint64_t pos, const char *text);
void tt_event_progress(uint64_t done, uint64_t total);
void tt_event_saved(const char *dir);
void tt_event_trouble(uint64_t pos, const char *mark, const char *what);
void tt_monitor_refuse_input(bool on);  /* a replay takes none */

#endif
