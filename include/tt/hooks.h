/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The hooks that QEMU's own files call: the whole surface between upstream code
 * and ours, one section per patched area. Each hook is an inline test of the
 * mode and a call; with -tt off it costs one predictable branch.
 *
 * Each site and its reason: docs/reference/upstream-touchpoints.rst.
 *
 * Context: "vCPU" = the thread that runs guest code, BQL held (it is the
 * execution token, see tt-token.c); "BQL" = any thread that holds it.
 */
#ifndef TT_HOOKS_H
#define TT_HOOKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TT_OFF, TT_RECORD, TT_REPLAY };

/*
 * Set while the command line is read. `tt record start` and `stop` change it
 * between TT_OFF and TT_RECORD, with the BQL held and the VM stopped, that is,
 * with the vCPU outside cpu_exec and nothing in flight.
 */
extern int tt_mode;

/*
 * The machine is made so that KVM's vCPUs can be recorded, at any moment: -tt ready, and
 * -tt record. Set while the command line is read, and never cleared.
 */
extern bool tt_is_ready;

/*
 * Remedies that a test leaves out (-tt ...,x-omit=): each known hazard has a
 * guest that diverges without its remedy.
 */
enum {
    TT_OMIT_EXCEPTION_COUNT = 1 << 0,
    TT_OMIT_UNWIND_COUNT = 1 << 1,
    TT_OMIT_FIXED_TLB = 1 << 2,
    TT_OMIT_BT_FLAGS = 1 << 3,
    TT_OMIT_RDMSR_IO = 1 << 4,
    TT_OMIT_UNHALT = 1 << 5,
    TT_OMIT_CPU_RESET = 1 << 6,
    TT_OMIT_DMA_INVALIDATE = 1 << 7,
    TT_OMIT_A20 = 1 << 8,
    TT_OMIT_IGNNE = 1 << 9,
    TT_OMIT_BOUNCE = 1 << 10,
    TT_OMIT_FETCH = 1 << 11,
    TT_OMIT_RESUME_FLAG = 1 << 12,
    TT_OMIT_INTO = 1 << 13,
    TT_OMIT_SECOND_FETCH = 1 << 14,
    TT_OMIT_VICTIMS = 1 << 15,
    TT_OMIT_WATCH_TLB = 1 << 16,
    TT_OMIT_DEVICE_REGS = 1 << 17,
    TT_OMIT_UNKEPT = 1 << 18,
    TT_OMIT_NEAR_TLB = 1 << 19,
    TT_OMIT_SEARCH_SKIP = 1 << 20,  /* no hazard: searches look everywhere */
    TT_OMIT_NEAR = 1 << 21,         /* no hazard: no near checkpoints */
    TT_OMIT_MAP_COMMIT = 1 << 22,
    TT_OMIT_BRANCH_COUNTS = 1 << 23,    /* no hazard: landmarks are without */
};
extern unsigned tt_omit;

/*
 * The VM that this process records stands still, and its past is shown: tt_mode is
 * TT_REPLAY, in guest RAM of the replay's own (tt-past.c). The external world
 * must take no notice: its clocks stand and its handlers are not told that
 * guest code runs.
 */
extern bool tt_past;

/* vm_stop, vm_start: for a moment only. No disk is flushed, no QMP event sent. BQL. */
extern bool tt_stands_briefly;

static inline bool tt_on(void)
{
    return __builtin_expect(tt_mode != TT_OFF, 0);
}
#include "tt/hooks-watch.h"    /* which asks that */

/* -tt is on the command line. */
static inline bool tt_given(void)
{
    return tt_is_ready || tt_on();
}

static inline bool tt_recording(void)
{
    return __builtin_expect(tt_mode == TT_RECORD, 0);
}

static inline bool tt_replaying(void)
{
    return __builtin_expect(tt_mode == TT_REPLAY, 0);
}

/* True under -tt unless a test leaves this remedy out. */
static inline bool tt_remedy(unsigned omit)
{
    return tt_on() && !(tt_omit & omit);
}

/*
 * Results and flags that the manuals leave undefined are those of a real CPU, and
 * approximations are the host's: a run that was recorded under KVM needs it. Set
 * before the first block is translated, and never changed. Off: as upstream.
 */
extern bool tt_like_hardware;

/* The fault of a fetch names the page, not the address: so did older runs. */
extern bool tt_fetch_names_page;

static inline bool tt_is_like_hardware(void)
{
    return __builtin_expect(tt_like_hardware, 0);
}

struct CPUState;
struct Error;
struct MachineState;
struct MemoryRegion;
struct QDict;
struct TranslationBlock;

/* ---- start-up (system/vl.c): main thread ---- */
void tt_option_parse(const char *optarg);           /* exits on a bad option */
/* When all options are read, before the machine is chosen. In a replay, chooses
 * the machine and the console; refuses what cannot be recorded. */
void tt_configure(struct QDict *machine_opts, bool has_default_serial,
                  int *default_monitor, bool *nographic, void *display_type,
                  bool has_icount, bool has_incoming, bool stopped);
/* When machine and accelerator are known, before any device exists. */
void tt_check_machine(struct MachineState *ms);
/* The type of its vCPUs is chosen. */
void tt_check_cpu(const char *type);
/* The machine is made and was reset; it has not run. */
void tt_machine_made(void);
/* A branch has disks of its own: for each -blockdev, then once, before any of them
 * and of the -drives is opened. */
struct BlockdevOptions;
void tt_branch_blockdev(struct BlockdevOptions **options);
void tt_branch_disks(int *snapshot);
void tt_finish(void);                               /* runstate.c, BQL */
int tt_exit_status(int status);     /* main.c: another one if tt_finish failed */
/* A monitor command that would leave the recorded or replayed history. True:
 * refused, *errp set. */
bool tt_refuses(const char *what, struct Error **errp);

/* ---- a crash of the guest (runstate.c, watchdog.c, excp_helper.c): any thread,
 * inside an instruction, too ---- */
enum { TT_CRASH_PANIC, TT_CRASH_WATCHDOG, TT_CRASH_TRIPLE_FAULT,
       TT_CRASH_CONSOLE };
void tt_guest_crash_slow(int kind);

static inline void tt_guest_crash(int kind)
{
    if (tt_recording()) {
        tt_guest_crash_slow(kind);
    }
}

/* ---- execution token (system/cpus.c, cpu-common.c): any thread ---- */
extern bool tt_token_on;        /* since the first use in this process */
bool tt_token_take_slow(void);
bool tt_token_unnest_slow(void);
void tt_token_served_slow(void);
bool tt_token_owe_slow(void);
void tt_token_repaid(void);

/* Before the BQL is taken. True: this is the vCPU, which has it. */
static inline bool tt_token_take(void)
{
    return __builtin_expect(tt_token_on, 0) && tt_token_take_slow();
}

/* The vCPU thread holds the token already: count the nesting only. */
static inline bool tt_token_unnest(void)
{
    return __builtin_expect(tt_token_on, 0) && tt_token_unnest_slow();
}

/* Any other thread: it got what it asked for. */
static inline void tt_token_served(void)
{
    if (__builtin_expect(tt_token_on, 0)) {
        tt_token_served_slow();
    }
}

/* The vCPU thread ends the wait of a thread that sleeps on a condition of the
 * BQL: that thread is in the queue from now on. True: it must call
 * tt_token_repaid when it is awake. */
static inline bool tt_token_owe(void)
{
    return __builtin_expect(tt_token_on, 0) && tt_token_owe_slow();
}

/* True, and all nesting dropped, in the vCPU thread (after a longjmp). */
bool tt_token_unwind(void);

/*
 * Set when this process is to record, and never cleared: what an iothread of the
 * user's would do the main loop does, which takes the token. Defined in iothread.c,
 * which tools link without us.
 */
extern bool tt_iothreads_fold;
/* ---- vCPU thread (accel/tcg) ---- */
#define TT_HOOK_TLB_BITS 11     /* fixed TLB: 2048 entries, no cost measured */
#define TT_HOOK_TLB_INVALID 0x800ull     /* TLB_INVALID_MASK of x86 */

struct CPUWatchpoint;
/* gdb's watchpoint @wp comes or goes. True: what the TLB holds of its pages is kept
 * and marked; a flush would show in accessed bits. False: it must be flushed. */
bool tt_watch_marks_slow(struct CPUState *cpu, const struct CPUWatchpoint *wp);

static inline bool tt_watch_marks(struct CPUState *cpu,
                                  const struct CPUWatchpoint *wp)
{
    return tt_on() && tt_watch_marks_slow(cpu, wp);
}

/*
 * How many instructions a block may have that begins @distance bytes before the
 * next breakpoint of its page (0: there is none), so that none but the first can
 * begin there: x86 instructions have 15 bytes at most. @count: what it is limited
 * to anyway. 0: as many as it likes.
 */
static inline uint32_t tt_insns_before_break(uint64_t distance, uint32_t count)
{
    uint64_t n = (distance + 14) / 15;

    if (!n || n > 500) {
        n = distance ? 500 : 0;
    }
    return !n || (count && count < n) ? count : n;
}

/*
 * Branch traces (trace/tt-trace.h). Blocks with this flag say where they begin; with it
 * off nothing is asked and nothing is translated.
 */
#define TT_HOOK_CF_TRACE 0x00080000     /* a bit that CF_* leave free */
extern bool tt_trace_is_on;
void tt_trace_unwound(struct CPUState *cpu);    /* a block was left in its middle */

/*
 * A counted block loads the counter, takes its instructions off and stores it: all
 * 32 bits at once, since the host cannot forward a 16-bit store to the next
 * block's 32-bit load. The upper half is where other threads kick the vCPU; a kick
 * between the load and the store is lost. It has set exit_request before, which
 * the vCPU sees when the counter runs out, TT_HOOK_KICK_LATE instructions later at
 * most.
 */
#define TT_HOOK_KICK_LATE 0xffff
/*
 * Is the code at @host_pc in a block, and not of its last instruction? Then it must
 * do no I/O, with which the map of memory can change. Without -tt each block says so
 * in CPUState.neg.can_do_io as it runs; here it is found out when I/O is done.
 */
bool tt_mid_block(uintptr_t host_pc);

/* A helper raised an exception without unwinding: its insn is in the count already. */
extern bool tt_insn_counted;
/* No instruction has begun: what faults is a fetch, a delivery, or a debug trap. */
extern bool tt_no_insn_begun;

/* The vCPU thread, BQL held: its turns as long as the VM is recorded. */
void tt_vcpu_loop(struct CPUState *cpu);
void tt_count_update(struct CPUState *cpu);         /* instead of icount_ */
void tt_count_exception(struct CPUState *cpu);      /* one was delivered */
/* Between two blocks, before interrupts are looked at: the counter may have run
 * out. True when the program flow was changed. */
bool tt_boundary(struct CPUState *cpu);
/* Replay: is the recorded end of HLT due at this position? */
bool tt_replay_unhalt(struct CPUState *cpu);
/* Replay: an interrupt of QEMU's class @type, or 0, could be taken here. */
void tt_replay_pending(struct CPUState *cpu, int type);
void tt_record_unhalt(struct CPUState *cpu);
void tt_cpu_was_reset(struct CPUState *cpu);

/*
 * Instruction fetch. When code enters a page decides when that page's accessed
 * bit is set. TCG looks a code page up when it happens to search or translate a
 * block, which depends on its caches. Here a page is looked up exactly when
 * control enters it for the first time since its translation was flushed.
 *
 * A block found in the jump cache was entered since then (flushes clear both), so
 * only a miss there has to ask.
 */
typedef struct TtFetched {      /* the page that was asked for last */
    uint64_t page;              /* virtual; not a page address: forgotten */
    uint32_t flags;             /* of the block looked up last */
    int mmu_idx;
    uint8_t *host;              /* NULL: not RAM */
} TtFetched;

extern TtFetched tt_fetched;

/* False: what is due here comes first, and no block may be looked up. */
bool tt_fetch_slow(struct CPUState *cpu, uint64_t pc, uint32_t flags);
bool tt_fetch_known(struct CPUState *cpu, uint64_t pc);
/*
 * An instruction on two pages begins its block. The second page is looked up when
 * it runs, after the block's own check that it may: while blocks are searched and
 * translated, an interrupt may still come first.
 * peek: where code on @page lies now, seen from outside; *@host NULL: not in RAM.
 * False: that cannot be known without a fetch (there is a fault, most likely).
 * begins: translator, after the start of each instruction of @tb, which is at @pc.
 */
bool tt_fetch_peek(struct CPUState *cpu, uint64_t page, void **host);
void tt_fetch_gen_second(struct TranslationBlock *tb);

static inline void tt_fetch_begins(int n_insns, struct TranslationBlock *tb,
                                   uint64_t pc)
{
    if (n_insns == 1 && (pc & 0xfff) > 0x1000 - 15 && tt_on()) {
        tt_fetch_gen_second(tb);
    }
}

/* A flush of everything (the caller flushes the jump cache, too), or of one page;
 * before the TLB itself is flushed. */
void tt_fetch_forget(struct CPUState *cpu);
void tt_fetch_forget_page(struct CPUState *cpu, uint64_t page);

static inline void tt_fetch(struct CPUState *cpu, uint64_t pc, uint32_t flags)
{
    if (__builtin_expect((pc & ~0xfffull) != tt_fetched.page ||
                         flags != tt_fetched.flags, 0)) {
        tt_fetch_slow(cpu, pc, flags);
    }
}

/* A virtual page comes into the TLB; @written: it may be written without another
 * call. Replays keep it for searches; recordings keep which page tables are in use. */
void tt_page_touched_slow(uint64_t addr, bool written);
void tt_paging_used(void);

static inline void tt_page_touched(uint64_t addr, bool written)
{
    if (tt_replaying()) {
        tt_page_touched_slow(addr, written);
    } else if (tt_recording()) {
        tt_paging_used();
    }
}

/* ---- synchronous inputs: vCPU, inside an instruction ---- */
void tt_pio_out(struct CPUState *cpu, uint32_t port, uint32_t val, unsigned size);
uint32_t tt_pio_in(struct CPUState *cpu, uint32_t port, unsigned size);
uint32_t tt_mmio_ld(struct CPUState *cpu, struct MemoryRegion *mr, uint64_t mr_offset,
                    uint64_t gpa, uint64_t *val, unsigned memop, const void *attrs);
uint32_t tt_mmio_st(struct CPUState *cpu, struct MemoryRegion *mr,
                    uint64_t mr_offset, uint64_t gpa, uint64_t val,
                    unsigned memop, const void *attrs);
uint64_t tt_tsc(void);
uint64_t tt_rand(uint64_t val, unsigned size, bool *carry);
void tt_cpuid(uint32_t leaf, uint32_t subleaf, uint32_t regs[4]);
void tt_msr_rd(uint32_t index, uint64_t *val, int *status);
void tt_msr_wr(uint32_t index, int *status);
uint64_t tt_cr8_rd(uint64_t val);
/* CR8 is written in a replay: the interrupt controller is not there. */
void tt_cr8_wr(uint64_t val);

/* Brackets device code that the vCPU runs inside an instruction. */
void tt_device_enter(void);
void tt_device_leave(void);

/* ---- asynchronous inputs ---- */
/* vCPU, just before the effect; @type is CPU_INTERRUPT_*. */
void tt_interrupt_intercepted(struct CPUState *cpu, int type);
void tt_interrupt_accepted(struct CPUState *cpu, int type, int vector);
void tt_interrupt_ack(bool begin);                  /* around the PIC's answer */
void tt_ram_written_slow(struct MemoryRegion *mr, uint64_t offset, uint64_t len);
void tt_ram_discarded_slow(void *ram_block, uint64_t start, uint64_t len);

/* Bytes of a RAM block changed, from whatever side; called after the write. */
static inline void tt_ram_written(struct MemoryRegion *mr, uint64_t offset, uint64_t len)
{
    if (tt_recording() || tt_past || tt_ram_is_watched()) {
        tt_ram_written_slow(mr, offset, len);
    }
}

static inline void tt_ram_discarded(void *ram_block, uint64_t start, uint64_t len)
{
    if (tt_recording() || tt_past) {
        tt_ram_discarded_slow(ram_block, start, len);
    }
}

/* physmem.c, for us: bytes were changed, drop translations and mark dirty. */
void tt_ram_changed(struct MemoryRegion *mr, uint64_t addr, uint64_t length);

/*
 * Direct-mapped DMA goes through a bounce buffer, see design, section 1. A
 * device that keeps a mapping for long and looks at it again maps directly and
 * says when it has written there (AHCI).
 */
extern bool tt_maps_directly;

static inline bool tt_bounces(bool is_write)
{
    return (tt_recording() || tt_past) && is_write && !tt_maps_directly &&
        !(tt_omit & TT_OMIT_BOUNCE);
}

static inline void tt_map_directly(bool on)
{
    tt_maps_directly = on;
}

/*
 * Page guarding (-tt record,guard=on): devices have guest RAM read-only, the vCPU
 * has a mapping of its own, so far away. @ram_block: a RAMBlock.
 */
extern bool tt_guard_is_on;
ptrdiff_t tt_guard_shift_slow(const void *ram_block);
void *tt_guard_host_slow(void *p);

static inline ptrdiff_t tt_guard_shift(const void *ram_block)
{
    return __builtin_expect(tt_guard_is_on, 0) ?
        tt_guard_shift_slow(ram_block) : 0;
}

/* What the TLB leads to, in the mapping that QEMU knows. */
static inline void *tt_guard_host(void *p)
{
    return __builtin_expect(tt_guard_is_on, 0) ? tt_guard_host_slow(p) : p;
}

struct AddressSpace;
/* How much of @len of RAM may be mapped now; 0: the device has to wait. Give it back: 0. */
uint64_t tt_bounce_take(struct AddressSpace *as, uint64_t len);
uint64_t tt_bounce_give(struct AddressSpace *as, uint64_t len);
/*
 * The end of a bounced DMA, BQL: of the @len bytes at @buffer, which held @before when the
 * device mapped them, those that it has changed go to @host, which is in @mr. False: it was
 * not bounced (@before is NULL).
 */
bool tt_bounce_merge(struct MemoryRegion *mr, uint8_t *host, uint8_t *buffer,
                     const uint8_t *before, uint64_t len);

void tt_mapped_written_slow(void *host, size_t len);
static inline void tt_mapped_written(void *host, size_t len)
{
    if (tt_recording() || tt_past) {
        tt_mapped_written_slow(host, len);
    }
}

/* ---- virtio-gpu, for the screen of a replay: BQL ---- */
/* A command (a virtio_gpu_ctrl_command) was carried out; the card is reset. */
void tt_gpu_command_slow(void *gpu, void *command);
void tt_gpu_reset_slow(void *gpu);

static inline void tt_gpu_command(void *gpu, void *command)
{
    if (tt_recording() || tt_past) {
        tt_gpu_command_slow(gpu, command);
    }
}

static inline void tt_gpu_reset(void *gpu)
{
    if (tt_recording() || tt_past) {
        tt_gpu_reset_slow(gpu);
    }
}

/* ---- while the past is shown: BQL ---- */
/* The VM is to run (system/cpus.c). At the end of the past that means: the present
 * goes on. */
void tt_past_vm_starts(void);
/* Of a start or stop of the past only the debugger hears, no other handler. */
void tt_past_notify(bool running, int state);
/* The debugger's handler, a VMChangeStateHandler. */
void tt_past_debugger(void *handler);

#include "tt/hooks-branches.h"
#include "tt/hooks-gdb.h"
#include "tt/hooks-kvm.h"
#include "tt/hooks-tcg.h"
#include "tt/hooks-undo.h"
#include "tt/hooks-vfio.h"

#endif
