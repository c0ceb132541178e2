/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tt hub: what it says, and what became of each frame, in numbers and in the log. Nobody who
 * reads neither may stop the hub.
 */
#include "tt-tool-hub.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define SAY_US      1000000         /* between two of one kind, at first, and ... */
#define SAY_MAX_US  600000000       /* ... while it goes on, each time twice as long */
#define WAITING_MAX (1u << 20)      /* bytes of lines that a pipe has no room for */
#define END_MS      2000            /* for those, at the end */

typedef struct HubLog {
    int fd;                     /* does not block; a file on disk may */
    GByteArray *waiting;
    guint write_tag;
    uint64_t n_lost, n_lost_now;        /* lines; n_lost_now: since the last one */
    bool has_failed;
} HubLog;

bool hub_can_write(int fd, int wait_ms)
{
    struct pollfd p = { .fd = fd, .events = POLLOUT };

    return poll(&p, 1, wait_ms) == 1 && p.revents & POLLOUT;
}

/* Not tool_complain, which remembers all that it has said. */
static void say(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    tool_say(fmt, ap);
    va_end(ap);
}

void hub_say(Hub *h, const char *fmt, ...)
{
    int64_t now = g_get_monotonic_time();
    TtSaid *s = tt_said_of(h->said, fmt);
    g_autofree char *text = NULL;
    uint64_t n_unsaid;
    va_list ap;

    if (!tt_said_is_due(s, now) || !hub_can_write(STDERR_FILENO, 0)) {
        s->n_unsaid++;
        return;
    }
    va_start(ap, fmt);
    text = g_strdup_vprintf(fmt, ap);
    va_end(ap);
    n_unsaid = tt_said_now(s, now, SAY_US, SAY_MAX_US);
    if (n_unsaid) {
        say("%s (and %" PRIu64 " more like this)", text, n_unsaid);
    } else {
        say("%s", text);
    }
}

/* ---- the log ---- */

static bool is_fifo(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISFIFO(st.st_mode);
}

/* A file into which this program's own output goes, too: the two share their place in it. */
static int begin_file(int fd)
{
    struct stat st, out;

    if (fstat(fd, &st) || !S_ISREG(st.st_mode)) {
        return fd;
    }
    if (fstat(STDOUT_FILENO, &out) == 0 && st.st_dev == out.st_dev &&
        st.st_ino == out.st_ino) {
        close(fd);
        return fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0);
    }
    return fd;
}

bool hub_log_open(Hub *h, const char *path)
{
    /* What another hub, or this one before, has written stays. */
    const int flags = O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
    int fd = open(path, O_WRONLY | flags, 0666);

    if (fd < 0 && errno == ENXIO && is_fifo(path)) {
        fd = open(path, O_RDWR | flags);        /* a reader may come later */
    }
    fd = fd < 0 ? fd : begin_file(fd);
    if (fd < 0) {
        tool_complain("cannot write %s: %s", path, g_strerror(errno));
        return false;
    }
    h->log = g_new0(HubLog, 1);
    h->log->fd = fd;
    h->log->waiting = g_byte_array_new();
    return true;
}

static void log_failed(HubLog *l, int error)
{
    if (!l->has_failed) {
        l->has_failed = true;
        tool_complain("cannot write the log: %s; it ends here, and frames are forwarded "
                      "as before", g_strerror(error));
    }
}

/* What the log takes of this, now. */
static size_t write_now(HubLog *l, const uint8_t *bytes, size_t len)
{
    size_t done = 0;

    while (done < len && !l->has_failed) {
        ssize_t n = write(l->fd, bytes + done, len - done);

        if (n >= 0) {
            done += n;
        } else if (errno == EAGAIN) {
            break;
        } else if (errno != EINTR) {
            log_failed(l, errno);
        }
    }
    return done;
}

static void write_waiting(HubLog *l)
{
    size_t n = write_now(l, l->waiting->data, l->waiting->len);

    g_byte_array_remove_range(l->waiting, 0, n);
    if (l->has_failed) {
        g_byte_array_set_size(l->waiting, 0);
    }
}

static void wait_to_write(HubLog *l);

static gboolean can_write(gint fd, GIOCondition what, gpointer opaque)
{
    HubLog *l = opaque;

    l->write_tag = 0;
    write_waiting(l);
    wait_to_write(l);
    return G_SOURCE_REMOVE;
}

static void wait_to_write(HubLog *l)
{
    if (l->waiting->len && !l->write_tag) {
        l->write_tag = g_unix_fd_add(l->fd, G_IO_OUT, can_write, l);
    }
}

static void append(HubLog *l, const char *line, size_t len)
{
    size_t n = l->waiting->len ? 0 : write_now(l, (const uint8_t *)line, len);

    if (n < len && !l->has_failed) {
        g_byte_array_append(l->waiting, (const uint8_t *)line + n, len - n);
    }
    wait_to_write(l);
}

static void lose_line(HubLog *l)
{
    if (!l->n_lost++ && hub_can_write(STDERR_FILENO, 0)) {
        tool_complain("the log is behind, since nobody reads it, or too slowly: lines are "
                      "lost, and frames are forwarded as before");
    }
    l->n_lost_now++;
}

/* How many lines are missing here. */
static void append_loss(HubLog *l)
{
    g_autofree char *line = g_strdup_printf("{\"lines_lost\": %" PRIu64 "}\n", l->n_lost_now);

    l->n_lost_now = 0;
    append(l, line, strlen(line));
}

/* When one was lost, others are until there is room for many. */
static void log_line(HubLog *l, const char *line, size_t len)
{
    size_t max = l->n_lost_now ? WAITING_MAX / 2 : WAITING_MAX;

    if (l->has_failed) {
        return;
    }
    if (l->waiting->len + len > max) {
        lose_line(l);
        return;
    }
    if (l->n_lost_now) {
        append_loss(l);
    }
    append(l, line, len);
}

/* Whoever reads it now gets the rest, if it goes fast. */
static void finish(HubLog *l)
{
    int64_t end = g_get_monotonic_time() + END_MS * 1000;
    int64_t left;

    if (l->n_lost_now && !l->has_failed) {
        append_loss(l);
    }
    while (l->waiting->len && (left = end - g_get_monotonic_time()) > 0 &&
           hub_can_write(l->fd, left / 1000)) {
        write_waiting(l);
    }
    for (size_t i = 0; i < l->waiting->len; i++) {
        l->n_lost += l->waiting->data[i] == '\n';
    }
    if (l->n_lost && hub_can_write(STDERR_FILENO, 0)) {
        tool_complain("%" PRIu64 " lines of the log were lost, since nobody read them in "
                      "time", l->n_lost);
    }
}

bool hub_log_close(Hub *h)
{
    HubLog *l = h->log;
    bool is_whole;

    if (!l) {
        return true;
    }
    if (l->write_tag) {
        g_source_remove(l->write_tag);
    }
    finish(l);
    if (close(l->fd)) {
        log_failed(l, errno);
    }
    is_whole = !l->has_failed && !l->n_lost;
    g_byte_array_free(l->waiting, true);
    g_clear_pointer(&h->log, g_free);
    return is_whole;
}

void hub_settle(Hub *h, const HubFrame *w, unsigned fate)
{
    static const char *const names[] = {
        "goes", "lost", "queue full", "hub full", "peer slow", "peer gone",
        "seen before",
    };
    char run[2 * TT_RUN_BYTES + 1], line[512];
    int len;

    *(fate == TT_FATE_GOES ? &h->n_gone : &h->n_lost) += 1;
    if (!h->log) {
        return;
    }
    tt_run_text(run, w->frame.run);
    len = g_snprintf(line, sizeof(line), "{\"ns\": %" PRIu64 ", \"from\": %u, \"run\": "
                     "\"%s\", \"sequence\": %" PRIu64 ", \"bytes\": %" PRIu32 ", \"to\": %u, "
                     "\"fate\": \"%s\", \"after_ns\": %" PRIu64 "}\n", w->came_ns, w->from,
                     run, w->frame.seq, w->frame.len, w->to, names[fate],
                     w->at_ns - w->came_ns);
    log_line(h->log, line, len);
}
