/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Unit tests of the timeline: a table of movements, step by step, and the
 * thinning of checkpoints. (tests/sim drives it through random movements.)
 */
#include "timeline/tt-timeline.h"

#include <glib.h>

/*
 * A movement as a script of words.
 *   what the timeline must say:      what the caller then does:
 *   R10   restore the one at 10      .      it went as wanted
 *   r30   run to 30                  e30    the run ended at 30
 *   s50   scan to 50                 d30    it diverged at 30
 *   =30T  done, at 30, reason:       i30    it was interrupted at 30
 *         Target Hit Start           o31    it stands at 31, a little farther
 *         End Diverged Interrupted   h20    a stop fired at 20
 *                                    +20 -20  checkpoint added, removed
 *                                    x20  its restore failed half-way
 */
typedef struct Movement {
    const char *name;
    const char *checkpoints;    /* positions */
    char kind;                  /* 'g'oto, the same when 'l'ost, 'r'everse search,
                                   's'urvey */
    uint64_t now, to;           /* target, or start of history */
    const char *script;
} Movement;

static const Movement movements[] = {
    /* ---- goto ---- */
    { "goto/here-moves-nothing", "0 10", 'g', 15, 15, "=15T" },
    { "goto/here-without-checkpoints", "", 'g', 15, 15, "=15T" },
    { "goto/here-on-a-checkpoint", "0 10", 'g', 10, 10, "=10T" },
    { "goto/forward-only-runs", "0 10", 'g', 12, 15, "r15 . =15T" },
    { "goto/forward-from-a-checkpoint", "0 10", 'g', 10, 15, "r15 . =15T" },
    { "goto/forward-over-a-checkpoint", "0 10 20", 'g', 5, 25,
      "R20 . r25 . =25T" },
    { "goto/forward-to-a-checkpoint", "0 10 20", 'g', 5, 20, "R20 . =20T" },
    { "goto/forward-before-all-checkpoints", "50", 'g', 5, 20, "r20 . =20T" },
    { "goto/backward", "0 10 20", 'g', 25, 13, "R10 . r13 . =13T" },
    { "goto/backward-to-a-checkpoint", "0 10 20", 'g', 25, 10, "R10 . =10T" },
    { "goto/backward-by-one", "0 10", 'g', 15, 14, "R10 . r14 . =14T" },
    { "goto/backward-by-one-from-a-checkpoint", "0 10", 'g', 10, 9,
      "R0 . r9 . =9T" },
    { "goto/beyond-the-end", "0 10", 'g', 12, 99, "r99 e60 =60E" },
    { "goto/the-end-itself", "0 10", 'g', 12, 60, "r60 e60 =60T" },
    { "goto/at-the-end-already", "0 10", 'g', 60, 99, "r99 e60 =60E" },
    { "goto/before-the-first-checkpoint", "10 20", 'g', 25, 5, "R10 . =10S" },
    { "goto/before-the-first-from-it", "10 20", 'g', 10, 5, "=10S" },
    { "goto/back-where-no-checkpoint-was", "40", 'g', 25, 5, "=25S" },
    { "goto/back-without-checkpoints", "", 'g', 25, 5, "=25S" },
    { "goto/where-a-vm-cannot-stand", "0", 'g', 25, 5, "R0 . r5 o6 =6T" },
    { "goto/end-behind-where-a-vm-cannot-stand", "0", 'g', 25, 59,
      "r59 e60 =60T" },
    { "goto/interrupted-too-late", "0", 'g', 25, 30, "r30 . =30T i30 =30T" },
    { "goto/ended-twice", "0", 'g', 25, 99, "r99 e60 e60 d60 =60E" },
    { "goto/interrupted-before-restoring", "0", 'g', 25, 5, "R0 i25 =25I" },
    { "goto/interrupted-after-restoring", "0", 'g', 25, 5, "R0 i0 =0I" },
    { "goto/interrupted-on-the-way", "0", 'g', 25, 5, "R0 . r5 i3 =3I" },
    { "goto/interrupted-at-the-target", "0", 'g', 25, 5, "R0 . r5 i5 =5I" },
    { "goto/diverged-when-restoring", "0", 'g', 25, 5, "R0 d0 =0D" },
    { "goto/diverged-on-the-way", "0", 'g', 25, 5, "R0 . r5 d4 =4D" },
    { "goto/uses-only-what-was-there", "0", 'g', 25, 5, "R0 . r5 +3 . =5T" },
    { "goto/checkpoint-removed-under-it", "0 10 20", 'g', 25, 22,
      "R20 -20 R10 . r22 . =22T" },
    { "goto/lost-on-the-way-forward", "0 10 20", 'g', 15, 25,
      "R20 x20 R10 . r25 . =25T" },
    { "goto/lost-to-the-first", "0 10 20", 'g', 5, 25,
      "R20 x20 R10 x10 R0 . r25 . =25T" },
    { "goto/lost-before-the-first-checkpoint", "10 20", 'g', 5, 25,
      "R20 x20 R10 x10 =18446744073709551615S" },
    { "goto/all-checkpoints-removed-under-it", "0", 'g', 25, 22,
      "R0 -0 =25S" },
    { "goto/first-checkpoint-removed-under-it", "10 20", 'g', 25, 5,
      "R10 -10 R20 . =20S" },
    { "goto/checkpoint-removed-behind-it", "0 10", 'g', 25, 22,
      "R10 . r22 -10 . =22T" },

    /* ---- reverse search ---- */
    { "reverse/last-of-several-hits", "0 10 20", 'r', 30, 0,
      "R20 . s30 h22 h25 h29 . R20 . r29 . =29H" },
    { "reverse/hit-where-the-search-began-is-left-out", "0 20", 'r', 30, 0,
      "R20 . s30 h25 h30 . R20 . r25 . =25H" },
    { "reverse/only-hit-is-where-it-began", "20", 'r', 30, 0,
      "R20 . s30 h30 . R20 . =20S" },
    { "reverse/interval-after-interval", "0 10 20", 'r', 30, 0,
      "R20 . s30 . R10 . s20 . R0 . s10 h4 . R0 . r4 . =4H" },
    { "reverse/no-hit-ends-at-the-start", "0 10 20", 'r', 30, 0,
      "R20 . s30 . R10 . s20 . R0 . s10 . R0 . =0S" },
    { "reverse/start-between-checkpoints", "0 10 20", 'r', 30, 15,
      "R20 . s30 . R10 . s20 . R10 . r15 . =15S" },
    { "reverse/hits-before-the-start-are-left-out", "0 10 20", 'r', 30, 15,
      "R20 . s30 . R10 . s20 h12 h16 . R10 . r16 . =16H" },
    { "reverse/hit-at-the-start-counts", "0 10", 'r', 30, 0,
      "R10 . s30 . R0 . s10 h0 . R0 . =0H" },
    { "reverse/start-at-a-checkpoint-needs-no-older-one", "0 10 20", 'r', 30,
      20, "R20 . s30 . R20 . =20S" },
    { "reverse/start-before-the-first-checkpoint", "10 20", 'r', 30, 0,
      "R20 . s30 . R10 . s20 . R10 . =10S" },
    { "reverse/from-the-start", "0 10", 'r', 0, 0, "=0S" },
    { "reverse/from-before-the-start", "0 10", 'r', 3, 5, "=3S" },
    { "reverse/from-a-checkpoint-takes-the-one-before", "0 10 20", 'r', 20, 0,
      "R10 . s20 h10 h20 . R10 . =10H" },
    { "reverse/from-right-after-a-checkpoint", "0 10 20", 'r', 21, 0,
      "R20 . s21 h20 h21 . R20 . =20H" },
    { "reverse/hits-out-of-place-are-left-out", "0 20", 'r', 30, 0,
      "h3 R20 h25 . s30 h4 h26 h24 . R20 h28 . r26 h25 . =26H h29 =26H" },
    { "reverse/start-where-a-vm-cannot-stand", "0", 'r', 30, 5,
      "R0 . s30 . R0 . r5 o6 =6S" },
    { "reverse/without-checkpoints", "", 'r', 30, 0, "=30S" },
    { "reverse/only-later-checkpoints", "40 50", 'r', 30, 0, "=30S" },
    { "reverse/from-the-only-checkpoint", "30", 'r', 30, 0, "=30S" },
    { "reverse/hit-at-a-checkpoint-by-the-run-from-it", "0 10 20", 'r', 30, 0,
      "R20 . s30 h20 . R20 . =20H" },
    { "reverse/hit-at-a-checkpoint-by-the-run-to-it", "0 10 20", 'r', 30, 0,
      "R20 . s30 . R10 . s20 h11 h20 . =20H" },
    { "reverse/hit-at-a-checkpoint-removed-meanwhile", "0 10 20", 'r', 30, 0,
      "R20 . s30 h20 -20 . R10 . r20 . =20H" },
    { "reverse/same-hit-twice", "0", 'r', 30, 0,
      "R0 . s30 h7 h7 h9 h9 . R0 . r9 . =9H" },
    { "reverse/pass-two-uses-a-checkpoint-of-pass-one", "0", 'r', 90, 0,
      "R0 . s90 +20 h25 +40 h50 +60 h70 +80 . R60 . r70 . =70H" },
    { "reverse/pass-two-may-need-no-run", "0", 'r', 90, 0,
      "R0 . s90 h50 +50 . R50 . =50H" },
    { "reverse/added-checkpoints-make-no-new-intervals", "0 50", 'r', 90, 0,
      "R50 . s90 +60 +70 . R0 . s50 +10 +20 . R0 . =0S" },
    { "reverse/scanned-checkpoint-removed", "0 50", 'r', 90, 0,
      "R50 . s90 -50 . R0 . s50 h49 . R0 . r49 . =49H" },
    { "reverse/next-checkpoint-removed", "0 20 50", 'r', 90, 0,
      "R50 . s90 -20 . R0 . s50 . R0 . =0S" },
    { "reverse/checkpoint-removed-before-it-is-restored", "0 20 50", 'r', 90,
      0, "R50 -50 R20 . s90 h50 . R20 . r50 . =50H" },
    { "reverse/pass-two-checkpoint-removed", "0 20 50", 'r', 90, 0,
      "R50 . s90 h60 . R50 -50 R20 . r60 . =60H" },
    { "reverse/all-checkpoints-removed", "20 50", 'r', 90, 0,
      "R50 . s90 -50 -20 . =90S" },
    { "reverse/hit-out-of-reach", "20", 'r', 90, 0,
      "R20 . s90 h30 +60 . R20 -20 R60 . =60S" },
    { "reverse/interrupted-before-restoring", "0", 'r', 9, 0, "R0 i9 =9I" },
    { "reverse/interrupted-after-restoring", "0", 'r', 9, 0, "R0 i0 =0I" },
    { "reverse/interrupted-while-scanning", "0", 'r', 9, 0,
      "R0 . s9 h2 i5 =5I" },
    { "reverse/interrupted-in-pass-two", "0", 'r', 9, 0,
      "R0 . s9 h2 . R0 . r2 i1 =1I" },
    { "reverse/interrupted-before-pass-two", "0", 'r', 9, 0,
      "R0 . s9 h2 . R0 i9 =9I" },
    { "reverse/interrupted-on-the-way-to-the-start", "0 10", 'r', 20, 5,
      "R10 . s20 . R0 . s10 . R0 . r5 i3 =3I" },
    { "reverse/diverged-when-restoring", "0", 'r', 9, 0, "R0 d0 =0D" },
    { "reverse/diverged-while-scanning", "0", 'r', 9, 0,
      "R0 . s9 h2 d5 =5D" },
    { "reverse/diverged-in-pass-two", "0", 'r', 9, 0,
      "R0 . s9 h2 . R0 . r2 d2 =2D" },
    { "reverse/ended-while-scanning-with-a-hit", "0", 'r', 9, 0,
      "R0 . s9 h2 e7 R0 . r2 . =2H" },
    { "reverse/ended-while-scanning-at-a-hit", "0", 'r', 9, 0,
      "R0 . s9 h7 e7 =7H" },
    { "reverse/ended-while-scanning-without-a-hit", "0 5", 'r', 9, 0,
      "R5 . s9 e7 R0 . s5 . R0 . =0S" },
    { "reverse/ended-in-pass-two", "0", 'r', 9, 0,
      "R0 . s9 h2 . R0 . r2 e1 =1E" },
    /* ---- goto, from a state that is lost ---- */
    { "lost/restores-before-it-stands", "0 10", 'l', 5, 5, "R0 . r5 . =5T" },
    { "lost/restores-before-it-goes-on", "0 10", 'l', 5, 9, "R0 . r9 . =9T" },
    { "lost/restores-the-nearest", "0 10", 'l', 5, 12, "R10 . r12 . =12T" },
    { "lost/begins-behind-the-target", "10", 'l', 5, 7, "R10 . =10S" },
    { "lost/interrupted", "0", 'l', 5, 9, "R0 i5 =5I" },
    /* ---- survey: now, from; up to 50 ---- */
    { "survey/scans-once-and-returns", "0 10 20", 's', 45, 5,
      "R0 . s50 h7 h30 . R20 . r45 . =45T" },
    { "survey/begins-at-a-checkpoint", "0 10 20", 's', 15, 25,
      "R20 . s50 . R10 . r15 . =15T" },
    { "survey/ends-with-the-log", "0 10 20", 's', 45, 5,
      "R0 . s50 e48 R20 . r45 . =45T" },
    { "survey/has-enough", "0 10", 's', 45, 5, "R0 . s50 e7 R10 . r45 . =45T" },
    { "survey/goes-on-from-where-it-is", "0", 's', 55, 5,
      "R0 . s50 . r55 . =55T" },
    { "survey/of-nothing", "0 60", 's', 55, 60, "=55T" },
    { "survey/interrupted", "0", 's', 55, 5, "R0 . s50 i20 =20I" },
    { "survey/diverged", "0", 's', 55, 5, "R0 . s50 d20 =20D" },
    { "survey/loses-its-checkpoint", "0 10", 's', 55, 15,
      "R10 -10 R0 . s50 . r55 . =55T" },
    { "survey/adds-a-checkpoint", "0", 's', 45, 5,
      "R0 . s50 +40 . R40 . r45 . =45T" },
};

/* The id of the checkpoint at @pos, in these tests. */
static TtCheckpointId id_of(uint64_t pos)
{
    return 1000 + pos;
}

static void add_all(TtTimeline *t, const char *positions)
{
    g_auto(GStrv) words = g_strsplit(positions, " ", -1);

    for (char **w = words; *w && **w; w++) {
        uint64_t pos = g_ascii_strtoull(*w, NULL, 10);

        g_assert_cmpint(tt_timeline_add(t, id_of(pos), pos, false), ==, TT_OK);
    }
}

static TtStopReason reason_of(char c)
{
    static const char letters[] = " THSEDI";
    const char *p = strchr(letters, c);

    g_assert_true(c && p);
    return p - letters;
}

/* Does the timeline say the same at the next question, and after it? */
static TtStep ask(TtTimeline *t)
{
    TtStep a = tt_timeline_step(t), b = tt_timeline_step(t);

    g_assert_true(a.kind == b.kind && a.checkpoint == b.checkpoint &&
                  a.pos == b.pos && a.reason == b.reason);
    g_assert_cmpint(tt_timeline_is_moving(t), ==, a.kind != TT_STEP_DONE);
    return a;
}

static void expect(TtTimeline *t, TtStepKind kind, uint64_t pos)
{
    TtStep step = ask(t);

    g_assert_cmpint(step.kind, ==, kind);
    g_assert_cmpuint(step.pos, ==, pos);
    g_assert_cmpuint(step.checkpoint, ==,
                     kind == TT_STEP_RESTORE ? id_of(pos) : 0);
}

static void do_word(TtTimeline *t, const char *word)
{
    char *rest;
    uint64_t pos = g_ascii_strtoull(word + 1, &rest, 10);

    switch (word[0]) {
    case 'R':
        expect(t, TT_STEP_RESTORE, pos);
        break;
    case 'r':
        expect(t, TT_STEP_RUN, pos);
        break;
    case 's':
        expect(t, TT_STEP_SCAN, pos);
        break;
    case '=':
        expect(t, TT_STEP_DONE, pos);
        g_assert_cmpint(ask(t).reason, ==, reason_of(*rest));
        break;
    case '.':
        tt_timeline_done(t, ask(t).pos, TT_STOP_NONE);
        break;
    case 'e':
        tt_timeline_done(t, pos, TT_STOP_END);
        break;
    case 'd':
        tt_timeline_done(t, pos, TT_STOP_DIVERGED);
        break;
    case 'i':
        tt_timeline_done(t, pos, TT_STOP_INTERRUPTED);
        break;
    case 'o':
        tt_timeline_done(t, pos, TT_STOP_TARGET);
        break;
    case 'h':
        tt_timeline_hit(t, pos);
        break;
    case '+':
        g_assert_cmpint(tt_timeline_add(t, id_of(pos), pos, false), ==, TT_OK);
        break;
    case '-':
        tt_timeline_remove(t, id_of(pos));
        break;
    case 'x':
        tt_timeline_lost(t);
        tt_timeline_remove(t, id_of(pos));
        break;
    default:
        g_error("unknown word %s", word);
    }
}

static void run_script(TtTimeline *t, const Movement *m)
{
    g_auto(GStrv) words = g_strsplit(m->script, " ", -1);
    uint64_t before = 0, done, total;

    if (m->kind == 's') {
        tt_timeline_survey(t, m->now, m->to, 50);
    } else if (m->kind == 'g') {
        tt_timeline_goto(t, m->now, m->to);
    } else if (m->kind == 'l') {
        tt_timeline_goto_lost(t, m->to);
    } else {
        tt_timeline_reverse_continue(t, m->now, m->to);
    }
    for (char **w = words; *w; w++) {
        do_word(t, *w);
        tt_timeline_progress(t, &done, &total);
        g_assert_cmpuint(done, <=, total);
        g_assert_cmpuint(done, >=, before);
        before = done;
    }
    g_assert_false(tt_timeline_is_moving(t));
    g_assert_cmpuint(done, ==, total);
}

static void test_movement(gconstpointer data)
{
    const Movement *m = data;
    TtTimeline *t = tt_timeline_new();

    g_assert_cmpint(tt_timeline_step(t).kind, ==, TT_STEP_DONE);
    add_all(t, m->checkpoints);
    run_script(t, m);
    tt_timeline_free(t);
    tt_timeline_free(NULL);
}

static void test_one_after_the_other(void)
{
    TtTimeline *t = tt_timeline_new();

    add_all(t, "0 10 20");
    for (unsigned round = 0; round < 3; round++) {
        for (unsigned i = 0; i < G_N_ELEMENTS(movements); i++) {
            const Movement *m = &movements[i];

            if (!strcmp(m->checkpoints, "0 10 20") &&
                !strpbrk(m->script, "+-x")) {
                run_script(t, m);
            }
        }
    }
    tt_timeline_free(t);
}

typedef struct Asked {
    unsigned n;
    uint64_t from[16], to[16];
    uint64_t skip_from;         /* no hit in the interval from here */
} Asked;

static bool may_hit(void *opaque, uint64_t from, uint64_t to)
{
    Asked *a = opaque;

    g_assert_cmpuint(a->n, <, G_N_ELEMENTS(a->from));
    a->from[a->n] = from;
    a->to[a->n++] = to;
    return from >= 30 || from < a->skip_from;
}

static void test_filter_skips_intervals(void)
{
    static const Movement m = { "", "", 'r', 45, 0,
        "R40 . s45 . R30 . s40 . R0 . s10 h3 . R0 . r3 . =3H" };
    TtTimeline *t = tt_timeline_new();
    Asked a = { .skip_from = 10 };

    add_all(t, "0 10 20 30 40");
    tt_timeline_set_filter(t, may_hit, &a);
    run_script(t, &m);
    g_assert_cmpuint(a.n, ==, 5);
    for (unsigned i = 0; i < a.n; i++) {
        g_assert_cmpuint(a.from[i], ==, 40 - 10 * i);
        g_assert_cmpuint(a.to[i], ==, i ? 50 - 10 * i : 45);
    }
    tt_timeline_free(t);
}

static void test_filter_may_skip_all(void)
{
    static const Movement m = { "", "", 'r', 25, 0, "R0 . =0S" };
    TtTimeline *t = tt_timeline_new();
    Asked a = { .skip_from = 0 };

    add_all(t, "0 10 20");
    tt_timeline_set_filter(t, may_hit, &a);
    run_script(t, &m);
    g_assert_cmpuint(a.n, ==, 3);
    tt_timeline_free(t);
}

static void test_filter_shortens_a_survey(void)
{
    static const char *const scripts[] = {
        "R0 . s10 h7 . R30 . s50 . R40 . r45 . =45T",
        "R0 . s10 e7 R40 . r45 . =45T",
        "R0 . s10 . R30 -30 R40 . s50 . R40 . r45 . =45T",
        "R0 . s10 . R30 . s50 i35 =35I",
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(scripts); i++) {
        Movement m = { "", "", 's', 45, 5, scripts[i] };
        TtTimeline *t = tt_timeline_new();
        Asked a = { .skip_from = 10 };

        add_all(t, "0 10 20 30 40");
        tt_timeline_set_filter(t, may_hit, &a);
        run_script(t, &m);
        tt_timeline_free(t);
    }
}

/* ---- checkpoints ---- */

static void test_refuses_what_is_taken(void)
{
    TtTimeline *t = tt_timeline_new();

    g_assert_cmpint(tt_timeline_add(t, 1, 10, false), ==, TT_OK);
    g_assert_cmpint(tt_timeline_add(t, 0, 20, false), ==, TT_ERR_INVALID);
    g_assert_cmpint(tt_timeline_add(t, 1, 20, false), ==, TT_ERR_INVALID);
    g_assert_cmpint(tt_timeline_add(t, 2, 10, false), ==, TT_ERR_INVALID);
    g_assert_cmpuint(tt_timeline_count(t), ==, 1);
    g_assert_cmpint(tt_timeline_add(t, 2, 20, false), ==, TT_OK);
    tt_timeline_remove(t, 1);
    g_assert_cmpint(tt_timeline_add(t, 3, 10, false), ==, TT_OK);
    g_assert_cmpuint(tt_timeline_count(t), ==, 2);
    tt_timeline_free(t);
}

static void test_finds_neighbours(void)
{
    static const uint64_t pos[] = { 70, 10, UINT64_MAX, 30, 0, 50 };
    TtTimeline *t = tt_timeline_new();
    uint64_t at = 99;

    g_assert_cmpuint(tt_timeline_find(t, 5, &at), ==, 0);
    g_assert_cmpuint(tt_timeline_find_after(t, 5, &at), ==, 0);
    g_assert_cmpuint(at, ==, 99);
    for (unsigned i = 0; i < G_N_ELEMENTS(pos); i++) {
        g_assert_cmpint(tt_timeline_add(t, i + 1, pos[i], false), ==, TT_OK);
    }
    for (uint64_t p = 0; p < 100; p++) {
        uint64_t before = p >= 70 ? 70 : p >= 50 ? 50 : p >= 30 ? 30 :
                          p >= 10 ? 10 : 0;
        uint64_t after = p < 10 ? 10 : p < 30 ? 30 : p < 50 ? 50 :
                         p < 70 ? 70 : UINT64_MAX;
        TtCheckpointId id = tt_timeline_find(t, p, &at);

        g_assert_cmpuint(pos[id - 1], ==, before);
        g_assert_cmpuint(at, ==, before);
        id = tt_timeline_find_after(t, p, &at);
        g_assert_cmpuint(pos[id - 1], ==, after);
        g_assert_cmpuint(at, ==, after);
    }
    g_assert_cmpuint(tt_timeline_find(t, UINT64_MAX, NULL), ==, 3);
    g_assert_cmpuint(tt_timeline_find_after(t, UINT64_MAX, NULL), ==, 0);
    tt_timeline_free(t);
}

/* A way back may be cut short by other means, and only that. */
static void test_is_there(void)
{
    TtTimeline *t = tt_timeline_new();
    uint64_t target = 99;

    add_all(t, "0 10 20");
    tt_timeline_goto(t, 15, 18);                    /* forward: it runs */
    g_assert_false(tt_timeline_goes_back_to(t, &target));
    tt_timeline_done(t, 18, TT_STOP_TARGET);
    tt_timeline_goto(t, 18, 25);                    /* forward, by a checkpoint */
    g_assert_cmpint(tt_timeline_step(t).kind, ==, TT_STEP_RESTORE);
    g_assert_false(tt_timeline_goes_back_to(t, &target));
    tt_timeline_done(t, 20, TT_STOP_NONE);
    tt_timeline_done(t, 25, TT_STOP_TARGET);
    tt_timeline_reverse_continue(t, 25, 0);         /* a search scans first */
    g_assert_cmpint(tt_timeline_step(t).kind, ==, TT_STEP_RESTORE);
    g_assert_false(tt_timeline_goes_back_to(t, &target));
    tt_timeline_done(t, 20, TT_STOP_NONE);
    tt_timeline_hit(t, 23);
    tt_timeline_done(t, 25, TT_STOP_NONE);          /* and then goes to what it found */
    g_assert_true(tt_timeline_goes_back_to(t, &target));
    g_assert_cmpuint(target, ==, 23);
    tt_timeline_is_there(t);
    g_assert_cmpint(tt_timeline_step(t).kind, ==, TT_STEP_DONE);
    g_assert_cmpint(tt_timeline_step(t).reason, ==, TT_STOP_HIT);
    g_assert_cmpuint(tt_timeline_step(t).pos, ==, 23);
    tt_timeline_goto(t, 23, 22);
    g_assert_true(tt_timeline_goes_back_to(t, &target));
    tt_timeline_is_there(t);
    g_assert_cmpint(tt_timeline_step(t).reason, ==, TT_STOP_TARGET);
    tt_timeline_free(t);
}

/* ---- thinning ---- */

static void test_thin_keeps_first_and_pinned(void)
{
    TtTimeline *t = tt_timeline_new();

    g_assert_cmpuint(tt_timeline_thin(t, 0, 0), ==, 0);
    tt_timeline_add(t, 1, 10, false);
    g_assert_cmpuint(tt_timeline_thin(t, 500, 0), ==, 0);
    tt_timeline_add(t, 2, 20, true);
    tt_timeline_add(t, 3, 30, false);
    tt_timeline_add(t, 4, 40, true);
    g_assert_cmpuint(tt_timeline_thin(t, 500, 0), ==, 3);
    tt_timeline_remove(t, 3);
    g_assert_cmpuint(tt_timeline_thin(t, 500, 0), ==, 0);
    tt_timeline_free(t);
}

static void test_thin_takes_the_least_loss(void)
{
    TtTimeline *t = tt_timeline_new();

    /* 41 leaves an interval of 20, and 40 would leave 21. */
    add_all(t, "0 20 40 41 60 80 100");
    g_assert_cmpuint(tt_timeline_thin(t, 100, 0), ==, id_of(41));
    tt_timeline_remove(t, id_of(41));
    /* All leave 40 (the last 20, right at the present): the farthest goes. */
    g_assert_cmpuint(tt_timeline_thin(t, 100, 0), ==, id_of(20));
    g_assert_cmpuint(tt_timeline_thin(t, 0, 0), ==, id_of(100));
    tt_timeline_free(t);
}

static void test_thin_of_equal_losses_takes_the_farther(void)
{
    TtTimeline *t = tt_timeline_new();

    /* 50 and 75 both lose two fifths of their distance; the rest is pinned. */
    add_all(t, "0 50 75");
    for (uint64_t pos = 40; pos <= 80; pos += 10) {
        tt_timeline_add(t, id_of(pos), pos, true);
    }
    g_assert_cmpuint(tt_timeline_thin(t, 100, 0), ==, id_of(50));
    tt_timeline_free(t);

    /* 25 and 50 likewise, seen from the other side. */
    t = tt_timeline_new();
    add_all(t, "0 25 50");
    for (uint64_t pos = 20; pos <= 60; pos += 10) {
        tt_timeline_add(t, id_of(pos), pos, true);
    }
    g_assert_cmpuint(tt_timeline_thin(t, 0, 0), ==, id_of(50));
    tt_timeline_free(t);
}

/* What lay after the last checkpoint still has to be reached from it. */
static void test_thin_remembers_how_far_history_goes(void)
{
    TtTimeline *t = tt_timeline_new();

    add_all(t, "0 30 40 50 60");
    g_assert_cmpuint(tt_timeline_thin(t, 0, 0), ==, id_of(60));
    add_all(t, "200");
    tt_timeline_remove(t, id_of(200));
    g_assert_cmpuint(tt_timeline_thin(t, 0, 0), ==, id_of(50));
    tt_timeline_free(t);
}

/*
 * A recording adds a checkpoint at each position and may keep CAP of them. The
 * intervals left must grow with their distance from the present: with an ideal
 * ratio r, (1 + r)^CAP = N, here r = 0.27. Twice that and rounding is allowed.
 */
static void test_thin_is_exponential(void)
{
    enum { CAP = 40, N = 12000 };
    TtTimeline *t = tt_timeline_new();
    uint64_t at, next, now;

    for (now = 0; now < N; now++) {
        tt_timeline_add(t, now + 1, now, false);
        if (tt_timeline_count(t) > CAP) {
            TtCheckpointId id = tt_timeline_thin(t, now, 0);

            g_assert_cmpuint(id, !=, 0);
            tt_timeline_remove(t, id);
        }
    }
    now--;
    g_assert_cmpuint(tt_timeline_count(t), ==, CAP);
    g_assert_cmpuint(tt_timeline_find(t, 0, NULL), ==, 1);
    for (at = 0; tt_timeline_find_after(t, at, &next); at = next) {
        g_assert_cmpuint(next - at, <=, 2 + (now - at) * 54 / 100);
    }
    g_assert_cmpuint(at, ==, now);
    tt_timeline_free(t);
}

/*
 * With slack a pass over history, whose end is known, leaves intervals of much
 * the same length: with that of half the history at most some three times the
 * mean, also when the present then moves about.
 */
static void test_thin_is_even_with_slack(void)
{
    enum { CAP = 100, N = 20000 };
    TtTimeline *t = tt_timeline_new();
    uint64_t at, next, now;

    for (now = 0; now < N; now++) {
        tt_timeline_add(t, now + 1, now, false);
        if (tt_timeline_count(t) > CAP) {
            tt_timeline_remove(t, tt_timeline_thin(t, now, N / 2));
        }
    }
    for (unsigned i = 0; i < 1000; i++) {
        now = i * 7919 % N;
        if (!tt_timeline_find(t, now, &at) || at != now) {
            tt_timeline_add(t, N + i + 1, now, false);
            tt_timeline_remove(t, tt_timeline_thin(t, now, N / 2));
        }
    }
    g_assert_cmpuint(tt_timeline_count(t), ==, CAP);
    for (at = 0; tt_timeline_find_after(t, at, &next); at = next) {
        g_assert_cmpuint(next - at, <=, 4 * N / CAP);
    }
    g_assert_cmpuint(N - at, <=, 4 * N / CAP);
    tt_timeline_free(t);
}

/* The same when the present moves into the middle of history. */
static void test_thin_is_dense_near_the_present(void)
{
    TtTimeline *t = tt_timeline_new();
    const uint64_t now = 500;
    uint64_t at, next, widest_near = 0, widest = 0;

    for (uint64_t pos = 0; pos <= 1000; pos += 5) {
        tt_timeline_add(t, pos + 1, pos, false);
    }
    while (tt_timeline_count(t) > 40) {
        tt_timeline_remove(t, tt_timeline_thin(t, now, 0));
    }
    for (at = 0; tt_timeline_find_after(t, at, &next); at = next) {
        uint64_t near = MIN(at > now ? at - now : now - at,
                            next > now ? next - now : now - next);

        widest = MAX(widest, next - at);
        if (near <= 25) {
            widest_near = MAX(widest_near, next - at);
        }
        g_assert_cmpuint(next - at, <=, 10 + near);
    }
    g_assert_cmpuint(widest_near, <=, 10);
    g_assert_cmpuint(widest, >=, 40);
    tt_timeline_free(t);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (unsigned i = 0; i < G_N_ELEMENTS(movements); i++) {
        g_autofree char *path = g_strconcat("/tt/timeline/", movements[i].name,
                                            NULL);

        g_test_add_data_func(path, &movements[i], test_movement);
    }
    g_test_add_func("/tt/timeline/one-movement-after-the-other",
                    test_one_after_the_other);
    g_test_add_func("/tt/timeline/filter/skips-intervals",
                    test_filter_skips_intervals);
    g_test_add_func("/tt/timeline/filter/may-skip-all",
                    test_filter_may_skip_all);
    g_test_add_func("/tt/timeline/filter/shortens-a-survey",
                    test_filter_shortens_a_survey);
    g_test_add_func("/tt/timeline/refuses-what-is-taken",
                    test_refuses_what_is_taken);
    g_test_add_func("/tt/timeline/finds-neighbours", test_finds_neighbours);
    g_test_add_func("/tt/timeline/a-way-back-may-be-cut-short", test_is_there);
    g_test_add_func("/tt/timeline/thin/keeps-first-and-pinned",
                    test_thin_keeps_first_and_pinned);
    g_test_add_func("/tt/timeline/thin/takes-the-least-loss",
                    test_thin_takes_the_least_loss);
    g_test_add_func("/tt/timeline/thin/of-equal-losses-takes-the-farther",
                    test_thin_of_equal_losses_takes_the_farther);
    g_test_add_func("/tt/timeline/thin/remembers-how-far-history-goes",
                    test_thin_remembers_how_far_history_goes);
    g_test_add_func("/tt/timeline/thin/is-even-with-slack",
                    test_thin_is_even_with_slack);
    g_test_add_func("/tt/timeline/thin/is-exponential",
                    test_thin_is_exponential);
    g_test_add_func("/tt/timeline/thin/is-dense-near-the-present",
                    test_thin_is_dense_near_the_present);
    return g_test_run();
}
