/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The tool as a client of QMP. QEMU sends one JSON object a line, and begins those that
 * matter here with "QMP", "return" or "error"; an event begins with its timestamp.
 */
#include "tt-tool-qmp.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define LINE_BYTES_MAX (1u << 20)
#define TURN_SECONDS 60         /* until this is served */
#define NOTE_MS 5000            /* until it is said what is waited for */

struct ToolQmp {
    int fd;
    bool has_greeted;
    GString *in;                /* what came and was not taken */
};

ToolQmp *tool_qmp_new(int fd)
{
    ToolQmp *q = g_new0(ToolQmp, 1);

    q->fd = fd;
    q->in = g_string_new(NULL);
    return q;
}

void tool_qmp_free(ToolQmp *q)
{
    if (q) {
        close(q->fd);
        g_string_free(q->in, true);
        g_free(q);
    }
}

int tool_unix_connect(const char *path)
{
    struct sockaddr_un where = { .sun_family = AF_UNIX };
    int fd, error;

    if (strlen(path) >= sizeof(where.sun_path)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    strcpy(where.sun_path, path);
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0 && (connect(fd, (struct sockaddr *)&where, sizeof(where)) < 0 ||
                    fcntl(fd, F_SETFL, 0) < 0)) {
        error = errno == EAGAIN ? EBUSY : errno;    /* too many wait for it already */
        close(fd);
        errno = error;
        return -1;
    }
    return fd;
}

static int connect_within(int fd, const struct addrinfo *at, int patience_ms)
{
    struct pollfd p = { .fd = fd, .events = POLLOUT };
    int error = 0;
    socklen_t len = sizeof(error);

    if (connect(fd, at->ai_addr, at->ai_addrlen) == 0) {
        return 0;
    }
    if (errno != EINPROGRESS) {
        return errno;
    }
    if (poll(&p, 1, patience_ms) != 1) {
        return ETIMEDOUT;
    }
    return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) ? errno : error;
}

int tool_inet_connect(const struct addrinfo *at, int patience_ms)
{
    int fd = socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int error = fd < 0 ? errno : connect_within(fd, at, patience_ms);

    if (fd >= 0 && error) {
        close(fd);
        errno = error;
        return -1;
    }
    return fd;
}

/* ---- lines ---- */

/* One that is there, g_free; or NULL. */
static char *take_line(ToolQmp *q)
{
    char *end = memchr(q->in->str, '\n', q->in->len), *line;
    size_t len;

    if (!end) {
        return NULL;
    }
    len = end - q->in->str;
    line = g_strndup(q->in->str, len);
    g_string_erase(q->in, 0, len + 1);
    return g_strchomp(line);
}

/* Of who has not greeted yet: what is there cannot become a greeting. NULL: it can. */
static const char *why_no_greeting(const ToolQmp *q)
{
    static const char human[] = "QEMU ";
    const char *p = q->in->str + strspn(q->in->str, "\r\n ");
    size_t len = q->in->str + q->in->len - p;

    if (q->has_greeted || (len < strlen(human) && !memcmp(p, human, len))) {
        return NULL;                        /* more will come */
    }
    if (g_str_has_prefix(p, human)) {
        return "this is a monitor for people: give the socket of its QMP (-qmp "
            "unix:PATH,server=on,wait=off)";
    }
    if (g_str_has_prefix(p, "{\n") || g_str_has_prefix(p, "{\r")) {
        return "it has line breaks in what it says (-qmp-pretty): give a socket of -qmp";
    }
    return *p == '{' ? NULL : "what is there does not speak QMP: give the socket of its QMP "
        "(-qmp unix:PATH,server=on,wait=off)";
}

/* The next one, g_free. NULL: *@why. */
static char *read_line(ToolQmp *q, int64_t until_us, char **why)
{
    char bytes[4096], *line;

    while (!(line = take_line(q))) {
        int64_t left_ms = (until_us - g_get_monotonic_time()) / 1000;
        struct pollfd p = { .fd = q->fd, .events = POLLIN };
        int is_there = left_ms > 0 ? poll(&p, 1, MIN(left_ms, INT_MAX)) : 0;
        ssize_t n = 0;

        if (!is_there) {
            *why = g_strdup("it does not answer");
            return NULL;
        }
        if (is_there < 0) {
            continue;                       /* a signal came: do not sleep in read */
        }
        n = read(q->fd, bytes, sizeof(bytes));
        if (n < 0 && (errno == EINTR || errno == EAGAIN)) {
            continue;
        }
        if (n <= 0 || q->in->len > LINE_BYTES_MAX) {
            *why = g_strdup(n <= 0 ? "it has closed the connection" :
                            "it does not speak QMP");
            return NULL;
        }
        g_string_append_len(q->in, bytes, n);
        *why = g_strdup(why_no_greeting(q));
        if (*why) {
            return NULL;
        }
    }
    return line;
}

int tool_qmp_fd(const ToolQmp *q)
{
    return q->fd;
}

char *tool_qmp_line(ToolQmp *q, bool *is_over)
{
    char bytes[4096], *line = take_line(q);
    ssize_t n;

    *is_over = false;
    while (!line) {
        n = recv(q->fd, bytes, sizeof(bytes), MSG_DONTWAIT);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0 || q->in->len > LINE_BYTES_MAX) {
            *is_over = n >= 0 || errno != EAGAIN;
            return NULL;
        }
        g_string_append_len(q->in, bytes, n);
        line = take_line(q);
    }
    return line;
}

static bool is_a(const char *line, const char *key)
{
    g_autofree char *head = g_strdup_printf("{\"%s\":", key);

    return g_str_has_prefix(line, head);
}

/* Passes over what is neither. NULL: *@why. */
static char *read_answer(ToolQmp *q, const char *one, const char *other,
                         unsigned seconds, char **why)
{
    int64_t until_us = g_get_monotonic_time() + seconds * G_USEC_PER_SEC;
    char *line;

    while ((line = read_line(q, until_us, why)) && !is_a(line, one) &&
           !is_a(line, other)) {
        g_free(line);
    }
    return line;
}

/* The number of \uXXXX; -1: this is none. */
static int code_at(const char *p)
{
    int code = 0;

    if (p[0] != '\\' || p[1] != 'u') {
        return -1;
    }
    for (unsigned i = 2; i < 6; i++) {
        int digit = g_ascii_xdigit_value(p[i]);

        if (digit < 0) {
            return -1;
        }
        code = code << 4 | digit;
    }
    return code;
}

/* @p: a backslash. Returns what is behind all that belongs to it. */
static const char *unescape(const char *p, GString *to)
{
    static const char letters[] = "bfnrt", meant[] = "\b\f\n\r\t";
    int code = code_at(p), low = code < 0 ? -1 : code_at(p + 6);
    const char *letter;

    if (code >= 0xd800 && code < 0xdc00 && low >= 0xdc00 && low < 0xe000) {
        g_string_append_unichar(to, 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00));
        return p + 12;
    }
    if (code >= 0) {
        bool is_fit = code && (code < 0xd800 || code >= 0xe000);

        g_string_append_unichar(to, is_fit ? code : 0xfffd);
        return p + 6;
    }
    if (!p[1]) {
        return p + 1;
    }
    letter = strchr(letters, p[1]);
    g_string_append_c(to, letter ? meant[letter - letters] : p[1]);
    return p + 2;
}

/* QEMU escapes what would end it, and all that is not ASCII. */
char *tool_qmp_words(const char *line, const char *key)
{
    g_autofree char *head = g_strdup_printf("\"%s\": \"", key);
    const char *from = strstr(line, head);
    GString *words;

    if (!from) {
        return NULL;
    }
    words = g_string_new(NULL);
    for (from += strlen(head); *from && *from != '"'; ) {
        if (*from == '\\') {
            from = unescape(from, words);
        } else {
            g_string_append_c(words, *from++);
        }
    }
    return g_string_free(words, false);
}

bool tool_qmp_send(ToolQmp *q, const char *command, const char *arguments)
{
    g_autofree char *text = g_strdup_printf("{\"execute\": \"%s\"%s%s}\n", command,
                                            arguments ? ", \"arguments\": " : "",
                                            arguments ?: "");

    return send(q->fd, text, strlen(text), MSG_NOSIGNAL) == (ssize_t)strlen(text);
}

bool tool_qmp_do(ToolQmp *q, const char *command, const char *arguments,
                 unsigned seconds, char **answer, char **why)
{
    g_autofree char *line = NULL;

    *why = NULL;
    if (!tool_qmp_send(q, command, arguments)) {
        *why = g_strdup("it has closed the connection");
        return false;
    }
    line = read_answer(q, "return", "error", seconds, why);
    if (line && is_a(line, "error")) {
        *why = tool_qmp_words(line, "desc") ?: g_strdup("");
    }
    if (!*why && answer) {
        *answer = g_steal_pointer(&line);
    }
    return !*why;
}

bool tool_qmp_greet(ToolQmp *q, unsigned seconds, char **why)
{
    g_autofree char *line = read_answer(q, "QMP", "QMP", seconds, why);

    q->has_greeted = line;
    return line && tool_qmp_do(q, "qmp_capabilities", NULL, seconds, NULL, why);
}

char *tool_qmp_quote(const char *text)
{
    GString *s = g_string_new("\"");

    for (const char *p = text; *p; p++) {
        if ((unsigned char)*p < ' ') {
            g_string_append_printf(s, "\\u%04x", *p);
        } else {
            g_string_append_printf(s, "%s%c", *p == '"' || *p == '\\' ? "\\" : "", *p);
        }
    }
    return g_string_free(g_string_append_c(s, '"'), false);
}

/* QEMU serves one client of a socket at a time, and few may wait there: others wait here, and
 * are told so. */
static int connect_in_turn(const char *path, int64_t now_us)
{
    int64_t until_us = now_us + TURN_SECONDS * G_USEC_PER_SEC;
    int64_t note_us = now_us + NOTE_MS * 1000;
    int fd;

    while ((fd = tool_unix_connect(path)) < 0 && errno == EBUSY && now_us < until_us) {
        if (now_us >= note_us) {
            g_autofree char *text = g_strdup_printf(
                "other programs use the socket of the VM at %s, and no more can wait there: "
                "tt tries it again, %d seconds at most", path, TURN_SECONDS);

            note_us = INT64_MAX;
            tool_note(text);
        }
        g_usleep(20000);
        now_us = g_get_monotonic_time();
    }
    return fd;
}

/* @path cannot be connected to. */
static const char *why_not(const char *path, int error)
{
    struct stat st;

    if (error == ECONNREFUSED && stat(path, &st) == 0) {
        return S_ISSOCK(st.st_mode) ? "the program that made this socket has ended, or does "
            "not listen any more" : "this is not a socket: give that of its QMP (-qmp "
            "unix:PATH,server=on,wait=off)";
    }
    return error == EBUSY ? "other programs use its socket, or wait for it" :
        g_strerror(error);
}

/* Whoever waits is told so. */
static void note_silence(int fd, const char *path)
{
    struct pollfd p = { .fd = fd, .events = POLLIN };

    if (poll(&p, 1, NOTE_MS) == 0) {
        g_autofree char *text = g_strdup_printf(
            "the VM at %s does not answer: is it stopped, or is another program using this "
            "socket? tt waits for it, %d seconds at most", path, TURN_SECONDS);

        tool_note(text);
    }
}

ToolQmp *tool_qmp_open(const char *path)
{
    int fd = connect_in_turn(path, g_get_monotonic_time());
    g_autofree char *why = NULL;
    ToolQmp *q;

    if (fd < 0) {
        tool_complain("cannot connect to the VM at %s: %s", path, why_not(path, errno));
        return NULL;
    }
    note_silence(fd, path);
    q = tool_qmp_new(fd);
    if (!tool_qmp_greet(q, TURN_SECONDS, &why)) {
        tool_complain("there is no QMP at %s: %s", path, why);
        tool_qmp_free(q);
        return NULL;
    }
    return q;
}
