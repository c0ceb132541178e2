/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Queries of verification about the VM where it stands, and its messages about what it
 * found.
 *
 * Context: the vCPU thread, BQL held, between two instructions. Nothing is changed.
 */
#ifndef TT_VERIFY_SAY_INT_H
#define TT_VERIFY_SAY_INT_H

#define TT_VERIFY_BYTES 8       /* shown of a page that differs */

typedef struct TtDiffering {
    uint64_t page;
    unsigned offset;            /* of the first byte that differs */
    unsigned n_bytes;           /* that do */
    uint8_t recorded[TT_VERIFY_BYTES], replayed[TT_VERIFY_BYTES];
} TtDiffering;

/* A line on stdout, for programs: a word, then key=value; the last value goes to
 * the end of the line. */
void tt_verify_say(const char *fmt, ...) G_GNUC_PRINTF(1, 2);
void tt_verify_say_page(const TtDiffering *d);
/* The registers of the vCPU whose turn it is. */
void tt_verify_say_state(void);
/* The last event of the log before this place, and the one that is next. */
void tt_verify_say_events(void);

/* @recorded against RAM as it is now (a page; NULL: zeros). False: they are equal. */
bool tt_verify_page_differs(uint64_t page, const void *recorded,
                            TtDiffering *d);

/* ---- registers of all vCPUs: of TtRegs, by number ---- */
GPtrArray *tt_verify_registers(void);

typedef struct TtVerifyReg {    /* one that differs; name NULL: none */
    unsigned cpu;
    char *name, *replayed;      /* g_free */
} TtVerifyReg;

/* Says all that differ; *@one becomes the first that changes with few
 * instructions, unless there is none. */
void tt_verify_compare_registers(GPtrArray *replayed, GPtrArray *recorded,
                                 TtVerifyReg *one);
void tt_verify_reg_cleanup(TtVerifyReg *r);
/* Has the VM that value in it now? */
bool tt_verify_reg_is(const TtVerifyReg *r);

#endif
