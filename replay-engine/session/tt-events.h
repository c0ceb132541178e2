/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Events of the session, for the monitor to tell its clients. Without a listener nobody
 * is told.
 *
 * Context: the BQL is held.
 */
#ifndef TT_EVENTS_H
#define TT_EVENTS_H

typedef struct TtEventListener {
    /* The VM has stopped there; @reason is a TtStopReason. */
    void (*stopped)(uint64_t pos, int reason);
    /* The replay did something else there than the run: "recorded: ...; replayed: ..." */
    void (*diverged)(uint64_t pos, const char *text);
    /* A movement has come so far, in positions. */
    void (*progress)(uint64_t done, uint64_t total);
    /* The window of a flight recorder has been saved there. */
    void (*saved)(const char *dir);
    /* The guest has crashed there, and the place has a mark. */
    void (*crashed)(uint64_t pos, const char *mark, const char *what);
    /* The same: something went wrong, as somebody else says. */
    void (*incident)(uint64_t pos, const char *mark, const char *what);
    /* No request: commands that are inputs of the guest are refused from now on, or
     * no longer. */
    void (*refuse_input)(bool on);
} TtEventListener;

extern const TtEventListener *tt_event_listener;

/* Once, before the command line is read. @l stays valid, and all of it is set. */
void tt_listen(const TtEventListener *l);

/* A line on stdout, for the tool that started this process: "@tool " and the text. Control
 * characters are replaced: a name of a hostile run ends no line. */
void tt_tell_tool(const char *tool, const char *fmt, va_list ap) G_GNUC_PRINTF(2, 0);

static inline void tt_tell_stopped(uint64_t pos, int reason)
{
    if (tt_event_listener) {
        tt_event_listener->stopped(pos, reason);
    }
}

static inline void tt_tell_diverged(uint64_t pos, const char *text)
{
    if (tt_event_listener) {
        tt_event_listener->diverged(pos, text);
    }
}

static inline void tt_tell_progress(uint64_t done, uint64_t total)
{
    if (tt_event_listener) {
        tt_event_listener->progress(done, total);
    }
}

static inline void tt_tell_saved(const char *dir)
{
    if (tt_event_listener) {
        tt_event_listener->saved(dir);
    }
}

static inline void tt_tell_crashed(uint64_t pos, const char *mark, const char *what)
{
    if (tt_event_listener) {
        tt_event_listener->crashed(pos, mark, what);
    }
}

static inline void tt_tell_incident(uint64_t pos, const char *mark, const char *what)
{
    if (tt_event_listener) {
        tt_event_listener->incident(pos, mark, what);
    }
}

static inline void tt_tell_refuse_input(bool on)
{
    if (tt_event_listener) {
        tt_event_listener->refuse_input(on);
    }
}

#endif
