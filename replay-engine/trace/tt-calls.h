/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The system calls of a run, from what the plugin syscalls prints (plugins-tt): which
 * process each belongs to, what it got back, and the text and the key of a call. (URDB
 * section 6: two versions of a program side by side.)
 *
 * A process is a program that began (exec) until the next one in the same page tables, or
 * its exit_group. A child that another process forked is one, too: it comes back with 0 from
 * a call on that one's stack. Calls of threads stand in the order in which they began.
 *
 * Context: any thread, one at a time. The caller owns a TtCalls; all that it hands out is
 * valid until tt_calls_free. Bad lines are refused, and nothing is trusted.
 */
#ifndef TT_CALLS_H
#define TT_CALLS_H

#include <stdbool.h>
#include <stdint.h>

#define TT_CALLS_NO_PROCESS UINT32_MAX

typedef struct TtCall {
    uint64_t pos, back_pos;     /* of the instructions that began and ended it */
    uint64_t result;
    uint32_t number;
    uint32_t process;           /* index, or TT_CALLS_NO_PROCESS: its begin is not known */
    bool has_result, is_pointer;        /* the result is a pointer, or an id */
    const char *args;           /* words: tt-syscalls.c */
} TtCall;

typedef struct TtCallsProcess {
    const char *name;           /* path, as given to execve; of a child its parent's */
    uint64_t table;             /* physical address of its page tables */
    uint64_t pos;               /* where it began */
    uint64_t entry;             /* address of its file's first instruction; 0: not known */
    uint32_t n_calls;
    bool is_child;              /* without an exec of its own */
} TtCallsProcess;

typedef struct TtCalls TtCalls;

TtCalls *tt_calls_new(void);
void tt_calls_free(TtCalls *c);                 /* NULL is fine */
/* A line, with or without its newline. False: it is none of the plugin's. Cost: O(1). */
bool tt_calls_line(TtCalls *c, const char *line);
/* After the last line: calls are in the order of their positions. */
void tt_calls_end(TtCalls *c);

uint32_t tt_calls_count(const TtCalls *c);
const TtCall *tt_calls_at(const TtCalls *c, uint32_t i);
uint32_t tt_calls_n_processes(const TtCalls *c);
const TtCallsProcess *tt_calls_process(const TtCalls *c, uint32_t i);
/* The @nth (from 1 on) program that is called so, by its path or by the end of that.
 * TT_CALLS_NO_PROCESS: there is none; *@n is how many there are. */
uint32_t tt_calls_find(const TtCalls *c, const char *name, uint32_t nth, uint32_t *n);

/* "write(1, "text", 4) = 4"; @name of the call, NULL: its number. g_free. */
char *tt_call_text(const TtCall *call, const char *name);
/* The same for two calls that do the same: without pointers, ids, and positions. g_free. */
char *tt_call_key(const TtCall *call);

#endif
