/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Shared by the commands of the `tt` tool.
 *
 * A command is a row of the table in tt.c: its options, its help and the function
 * that carries it out. tt-tool-args.c takes the command line apart by that row.
 */
#ifndef TT_TOOL_H
#define TT_TOOL_H

#include "io/tt-io.h"
#include "log/tt-log.h"
#include "run/tt-manifest.h"
#include "pages/tt-pagestore.h"
#include "run/tt-runstore.h"

#include <glib.h>
#include <stdarg.h>

/* Exit statuses; docs/man/tt.1 lists them. */
enum {
    TOOL_FINE = 0,
    TOOL_PROBLEM = 1,           /* with the run, or the system */
    TOOL_USAGE = 2,
    TOOL_DIVERGED = 3,          /* a replay was not exact */
};

/* ---- the command line ---- */

typedef struct ToolOption {
    const char *name;           /* "--json" */
    const char *value;          /* what follows it, for people; NULL: nothing */
    bool is_many;               /* may be given more than once */
    const char *help;
    bool is_needed;             /* the command sees to it */
} ToolOption;

#define TOOL_OPTIONS_MAX 16
#define TOOL_OPERANDS_MAX 4

typedef struct ToolArgs ToolArgs;

typedef struct ToolCommand {
    const char *name;
    const char *operands[TOOL_OPERANDS_MAX + 1];    /* "RUN"; NULL
                                   ends; those in [] may be absent */
    bool takes_rest;            /* what is after -- is for another program */
    const char *what;           /* a sentence */
    ToolOption options[TOOL_OPTIONS_MAX + 1];
    int (*run)(const ToolArgs *args);
} ToolCommand;

struct ToolArgs {
    const ToolCommand *command;
    const char *program;        /* as this one was called */
    const char *operand[TOOL_OPERANDS_MAX];         /* or NULL */
    GPtrArray *given;           /* name, value, name, value ... */
    char **rest;                /* after --; NULL: nothing */
};

extern const ToolCommand tool_commands[];           /* ends with name NULL */

/* Takes @argv (after the program's name) apart. Returns TOOL_FINE, or what the
 * process ends with; then *@is_over. */
int tool_args_parse(ToolArgs *a, const char *program, char **argv,
                    bool *is_over);
void tool_args_cleanup(ToolArgs *a);
bool tool_has(const ToolArgs *a, const char *option);
/* The last value given, or NULL. */
const char *tool_value(const ToolArgs *a, const char *option);
/* The values one after the other, from *@n = 0 on; NULL after the last. */
const char *tool_next_value(const ToolArgs *a, const char *option,
                            unsigned *n);
/* A number; @fallback when it is not given. False: said what is wrong. */
bool tool_number_option(const ToolArgs *a, const char *option,
                        uint64_t fallback, uint64_t *n);
/* @text as a number. False: said that @what takes @kind, or that it is too large. */
bool tool_take_number(const ToolArgs *a, const char *what, const char *kind,
                      const char *text, uint64_t *n);
#define TOOL_POSITION_IS "a position: a number, start, end or @MARK"
/* @text, for @what: such a position of the run that is the first operand. An exit status,
 * having said what is wrong. */
int tool_position(const ToolArgs *a, const char *what, const char *text, uint64_t *pos);
/* --from and --to, which may be marks, too; of a part, there is something between. */
int tool_take_bounds(const ToolArgs *a, uint64_t *from, uint64_t *to);
int tool_take_part(const ToolArgs *a, uint64_t *from, uint64_t *to);
/* A note, if there is nothing from @from on. */
void tool_note_beyond(const TtLogReader *r, uint64_t from);
/* Says what is wrong with the command line. Returns TOOL_USAGE. */
int tool_usage(const ToolCommand *c, const char *fmt, ...)
    G_GNUC_PRINTF(2, 3);

/* ---- saying things ---- */

/* On stderr, as one line, made harmless. The next two return TOOL_PROBLEM. */
void tool_say(const char *fmt, va_list ap) G_GNUC_PRINTF(1, 0);
int tool_problem(const TtDiag *diag);
int tool_complain(const char *fmt, ...) G_GNUC_PRINTF(1, 2);
void tool_note(const char *text);
/* Said elsewhere already: a complaint that only tool_json_error is to know. */
void tool_remember(const char *text);
/* From here on sentences begin with this, of the caller's. NULL: no more. */
/* As nohup has it for SIGHUP: then it is not to be caught either. */
bool tool_is_ignored(int number);
void tool_set_subject(const char *text);
/* "1,234,567"; the caller frees. */
char *tool_number(uint64_t n);
/* "1 segment", "1,234 segments"; the caller frees. */
char *tool_count(uint64_t n, const char *what);
/* "1.2 MB"; the caller frees. */
char *tool_bytes(uint64_t n);
/* For printf's %-*s, which counts bytes: @columns for @name. */
int tool_width(const char *name, int columns);
/* Digits, or 0x and hex digits. */
bool tool_parse_number(const char *text, uint64_t *n);
/* What a command answers with --json begins with tool_json_begin: "{". When it had no
 * answer tool_json_error says the first complaint instead, as {"error": ...}. */
void tool_json_begin(void);
void tool_json_error(void);
/* In quotes. */
void tool_json_string(const char *text);
const char *tool_json_bool(bool value);

/* ---- runs ---- */

/* Is it a run, as far as its manifest says? False: said why not. */
bool tool_is_run(const char *run);
/* Opens RUN/log, or what lies before its damage; that is said, and tool_log_status
 * is TOOL_PROBLEM then. NULL after having said why. */
TtLogReader *tool_open_log(const char *run);
/* The log of exits that a converted run keeps: what KVM recorded. */
TtLogReader *tool_open_exits(const char *run);
int tool_log_status(const TtLogReader *r);
/* Can all be read that the checkpoints in @pack need? It is one of the run @m in @run. */
bool tool_pack_is_whole(TtIo *pack, const TtManifest *m, const char *run);
/* Was the run that was opened last being recorded just then? */
bool tool_is_growing(void);
/* Can QEMU replay it as it is? False: said why not. */
bool tool_is_replayable(const char *run, const TtManifest *m, const TtLogReader *r);
/* A sentence about parts of the log that are missing in the middle, g_free; NULL:
 * none are. */
char *tool_gap(const char *run);
/* Opens manifest and log, which must belong together. NULL: said so. */
TtLogReader *tool_open_run(const char *run, TtManifest *m);
/* Of the runs opened from now on that are cut off at most @max are named, and those that are
 * being recorded are not: the caller does so of all at once. 0: all are. */
void tool_limit_torn(unsigned max);
/* The same; of damage in the log it says nothing: tool_damage does. */
TtLogReader *tool_open_run_for_check(const char *run, TtManifest *m);
/* May @path be made, or is it inside of a run, which then would not be its recorder's
 * any more? False: said so. */
bool tool_is_fit(const char *path);
/* Can a recording be made in @to, as QEMU asks? And has the run @m in @run the full
 * checkpoint @at, a number or @NAME? False: said why not. */
bool tool_can_record_into(const char *to);
bool tool_has_full(const char *run, const TtManifest *m, const char *at);
/* Can a replay begin with this checkpoint: is its place in what there is of the
 * log? */
bool tool_is_in_log(TtPageStore *ps, const TtCheckpointInfo *info,
                    const TtLogReader *r);
/* Where a replay begins: 0, or at the first checkpoint of a window (then what the
 * log has before it serves nothing). False: at none. */
bool tool_start(TtPageStore *ps, const TtLogReader *r, uint64_t *pos);
/* The same, with the checkpoints of @run, if it has any. Without one: what the log begins
 * with. */
uint64_t tool_first(const char *run, const TtManifest *m, const TtLogReader *r);
#define TOOL_EMPTY_RUN "the run '%s' is empty: no whole segment of its log was written"
/* What is damaged or missing: sentences, as of `tt check`, which looks at all; of the
 * log in any case. Cost: reads what it looks at. */
enum {
    TOOL_LOOK_STORE = 1,        /* pages and checkpoints */
    TOOL_LOOK_PARENTS = 2,
    TOOL_LOOK_MARKS = 4,
    TOOL_LOOK_REPLAY = TOOL_LOOK_STORE | TOOL_LOOK_PARENTS,     /* what one reads */
};
GPtrArray *tool_damage(const char *run, const TtManifest *m, TtLogReader *r,
                       unsigned look);
/* A sentence for such a list; control characters in it become '?'. */
void tool_add(GPtrArray *to, const char *fmt, ...) G_GNUC_PRINTF(2, 3);
/* ", "NAME": [...]". */
void tool_json_list(const char *name, const GPtrArray *list);
/* Positions, events and bytes of a whole log. */
typedef struct ToolTotals {
    uint64_t first_pos, end_pos, n_events, n_segments;
    uint64_t began_ns, host_ns; /* host time at its begin, and how long it is */
    uint64_t ev_raw, ev_stored, pl_raw, pl_stored;
} ToolTotals;
ToolTotals tool_totals(const TtLogReader *r);
/* One rule for all that replay a part: @from is before the end of the run, @to may be beyond
 * it, and is UINT64_MAX then. An exit status, having said what is wrong. */
int tool_fit_part(const ToolTotals *t, uint64_t from, uint64_t *to);
/* One that can be given to a shell, on stdout. */
void tool_print_command(char **args);
/* The next four: g_free. NULL: said why. */
char *tool_whole_path(const char *path);        /* tt_io_posix_absolute */
/* What --qemu names, or the qemu-system-x86_64 beside this program: it can be executed. */
char *tool_find_qemu(const ToolArgs *a);
/* Another of QEMU's programs, beside @program, which is this one. */
char *tool_find_beside(const char *program, const char *name);
/* The whole @path as the value of an option of QEMU's. */
char *tool_option_value(const char *path);
/* Removes it and all below it. Returns how many there were in it. */
unsigned tool_remove_directory(const char *path);
/* A comma in a value of QEMU's options is doubled. g_free. */
char *tool_escaped(const char *text);
/* The value of @key in such an option, or in one that is an object in JSON with strings only;
 * g_free. NULL: it is not there. */
char *tool_option_key(const char *option, const char *key);
/* Where the frame stores of the group of @run are now, by its manifest or the options that it
 * was recorded with; g_free. NULL: it has none. */
char *tool_frames_dir(const char *run, const TtManifest *m);
/* The same, or what --frames says, for a branch of @run; *@dir: g_free. An exit status, having
 * said what is wrong. */
int tool_choose_frames(const ToolArgs *a, const char *run, const TtManifest *m, char **dir);
/* A sentence, if the bytes of what the run sent are not there, though it names the stores;
 * g_free, or NULL. Cost: reads the log then, up to the first frame. */
char *tool_frames_note(const char *run, const TtManifest *m, TtLogReader *r);

/* Names for addresses: lines of "ADDRESS TYPE NAME", or an ELF file. Returns an exit
 * status, having said what is wrong; *@out is to be freed in any case. */
typedef struct ToolSymbols ToolSymbols;
int tool_symbols_load(const char *path, ToolSymbols **out);
void tool_symbols_free(ToolSymbols *s);         /* NULL is fine */
const char *tool_symbols_path(const ToolSymbols *s);
/* Is it an ELF file, which may have types? */
bool tool_symbols_is_elf(const ToolSymbols *s);
/* "NAME+0x12", or NULL: there is no name. The caller frees it; @s may be NULL. */
char *tool_symbols_find(const ToolSymbols *s, uint64_t addr);
/* Where @name, of @len bytes, is, and whether that is code; returns at how many
 * addresses. Cost: looks at all. */
size_t tool_symbols_address(const ToolSymbols *s, const char *name, size_t len,
                            uint64_t *addr, bool *is_code);
/* Are addresses only offsets into sections, as in a module? And is @name one into .text? */
bool tool_symbols_is_relocatable(const ToolSymbols *s);
/* And do a program's begin at 0, so that it is loaded elsewhere? */
bool tool_symbols_is_floating(const ToolSymbols *s);
bool tool_symbols_is_text(const ToolSymbols *s, const char *name, size_t len);
/* @text with a name after the address of its first "pc 0x...". The same. */
char *tool_symbols_add(const ToolSymbols *s, const char *text);

/* What the disks of @run, and other runs, have, for a log that names it. */
typedef struct ToolFill ToolFill;
ToolFill *tool_fill_new(const ToolArgs *args, const char *run, const TtManifest *m);
void tool_fill_free(ToolFill *f);               /* NULL is fine */
/* @ev, which names bytes (tt_event_is_named), becomes one that has its bytes, valid until the
 * next call. */
TtStatus tool_fill_event(ToolFill *f, TtEvent *ev, TtDiag *diag);
/*
 * The log of @r with what it names (@fill), or with zeros for all values and data
 * (NULL), in a file without a name beside @path: *@out is the caller's to close, also
 * after a failure (then it may be NULL). Cost: reads and writes the whole log.
 */
TtStatus tool_edit_log(TtLogReader *r, const char *path, ToolFill *fill, TtIo **out,
                       TtDiag *diag);

/* Disks and frames that are missing of those that the log names, and what a replay reaches
 * without them. Cost: reads the whole log if disks are missing, or it names frames. */
typedef struct ToolSpan {
    uint64_t from, to;          /* positions, both included */
} ToolSpan;

typedef struct ToolReach {
    GPtrArray *missing;         /* names of disks */
    GPtrArray *lost;            /* a sentence for each run that sent frames: the first
                                   that is not there */
    GArray *spans;              /* of ToolSpan, ascending; only if something is missing */
} ToolReach;

ToolReach *tool_reach(const char *run, const TtManifest *m, TtLogReader *r);
bool tool_reach_is_whole(const ToolReach *reach);        /* nothing is missing */
void tool_reach_free(ToolReach *reach);
/* Lines of `tt info`; members of its JSON object, with a comma in front; a complaint, if
 * some are missing. */
void tool_reach_print(const ToolReach *reach);
void tool_reach_json(const ToolReach *reach);
int tool_reach_complain(const ToolReach *reach);

/* Where the run stands among its branches: lines of `tt info`; members of its JSON
 * object, with a comma in front. */
void tool_print_tree(const char *run, const TtManifest *m);
void tool_json_tree(const char *run, const TtManifest *m);
/* Each parent, nearest first, and each branch: @kind is "parent" or "branch", and @pos
 * where the branch begins, of a parent in that. */
typedef void ToolBranchFound(void *opaque, const char *kind, const char *path,
                             uint32_t checkpoint, uint64_t pos);
void tool_each_branch(const char *run, const TtManifest *m, ToolBranchFound *found,
                      void *opaque);

/* ---- commands ---- */
int tool_info(const ToolArgs *a);
int tool_log(const ToolArgs *a);
int tool_stats(const ToolArgs *a);
int tool_check(const ToolArgs *a);
int tool_verify(const ToolArgs *a);
int tool_find(const ToolArgs *a);
int tool_run_plugin(const ToolArgs *a);
int tool_origin(const ToolArgs *a);
int tool_pack(const ToolArgs *a);
int tool_unpack(const ToolArgs *a);
int tool_branch(const ToolArgs *a);
int tool_term(const ToolArgs *a);
int tool_trace(const ToolArgs *a);
int tool_branches(const ToolArgs *a);
int tool_compare_traces(const ToolArgs *a);
int tool_syscalls(const ToolArgs *a);
int tool_compare(const ToolArgs *a);
int tool_disk(const ToolArgs *a);
int tool_group(const ToolArgs *a);
int tool_hub(const ToolArgs *a);
int tool_watch(const ToolArgs *a);
int tool_page(const ToolArgs *a);
int tool_time(const ToolArgs *a);
int tool_console(const ToolArgs *a);
int tool_mcp(const ToolArgs *a);

#endif
