/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tt disk export and serve: a version of a disk as a file, by qemu-img, or over NBD, by
 * qemu-nbd. A file appears when it is complete; what is served is never written.
 */
#include "tt-tool-disk.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- export ---- */

static const char *format_of(const ToolArgs *a, const char *out)
{
    const char *format = tool_value(a, "--format");

    if (!format) {
        format = g_str_has_suffix(out, ".qcow2") ? "qcow2" : "raw";
    }
    if (strcmp(format, "raw") != 0 && strcmp(format, "qcow2") != 0) {
        tool_usage(a->command, "--format is raw or qcow2, not '%s'", format);
        return NULL;
    }
    return format;
}

#define LITTLE_BYTES    (1u << 20)

/* How @pid ended. */
static bool wait_for(pid_t pid)
{
    int status = -1;

    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* qemu-img has said what happened. */
static void complain_not_written(const char *to)
{
    g_autofree char *folder = g_path_get_dirname(to);
    struct statvfs fs;

    if (!statvfs(folder, &fs) && (uint64_t)fs.f_bavail * fs.f_frsize < LITTLE_BYTES) {
        tool_complain("the file system of '%s' is full: make room, or export to another "
                      "one", folder);
    } else {
        tool_complain("qemu-img could not copy the disk");
    }
}

static bool convert(const ToolArgs *a, const char *options, const char *format,
                    const char *to)
{
    g_autofree char *program = tool_find_beside(a->program, "qemu-img");
    const char *const argv[] = {
        program, "convert", "--image-opts", "-O", format, options, to, NULL,
    };
    pid_t pid;

    if (!program) {
        return false;
    }
    fflush(stdout);
    pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        dup2(2, 1);
        execv(program, (char **)argv);
        fprintf(stderr, "tt: cannot run '%s': %s\n", program, g_strerror(errno));
        _exit(127);
    }
    if (pid < 0) {
        tool_complain("cannot start a process: %s", g_strerror(errno));
        return false;
    }
    if (!wait_for(pid)) {
        complain_not_written(to);
        return false;
    }
    return true;
}

/* A power cut must not leave the name without the bytes: in the place of another file,
 * that would be lost as well. */
static bool make_durable(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    bool ok = fd >= 0 && fsync(fd) == 0;

    if (!ok) {
        tool_complain("cannot write '%s' to the disk: %s", path, g_strerror(errno));
    }
    if (fd >= 0) {
        close(fd);
    }
    return ok;
}

/* Gives what was written its name, which must be free unless @force. */
static bool give_name(const char *from, const char *out, bool force)
{
    bool ok = force ? rename(from, out) == 0 :
              link(from, out) == 0 && unlink(from) == 0;

    if (!ok) {
        tool_complain("cannot rename the new disk to '%s': %s", out, g_strerror(errno));
    } else {
        tt_io_posix_sync_directory_of(out);
    }
    return ok;
}

static bool is_file(const struct stat *st, const char *path)
{
    struct stat other;

    return path && !stat(path, &other) && other.st_dev == st->st_dev &&
        other.st_ino == st->st_ino;
}

#define BELOW_MAX       64              /* disks on top of each other */

/* Is it one of those that the run of @disk has noted below its disks? */
static bool is_noted(const struct stat *st, const char *disk)
{
    g_autofree char *folder = tool_disk_folder(disk);
    g_autofree char *run = folder ? g_path_get_dirname(folder) : NULL;
    bool found = false;
    TtBases bases;

    if (!folder || tt_bases_load(folder, &bases, NULL) != TT_OK) {
        return false;
    }
    for (unsigned i = 0; i < bases.n; i++) {
        const TtBase *k = bases.base[i];

        for (unsigned n = 0; n < k->n_files; n++) {
            g_autofree char *path = g_canonicalize_filename(k->files[n].path, run);

            found |= is_file(st, path);
        }
    }
    tt_bases_cleanup(&bases);
    return found;
}

/* The disk itself, or an image below it: it would be lost, with all that needs it. */
static bool is_own(const ToolDisk *d, const char *out)
{
    ToolDisk lower = { .path = g_strdup(d->path) };
    TtBlockMap *map = d->map;
    bool found = false;
    struct stat st;

    for (unsigned i = 0; i < BELOW_MAX && map && !stat(out, &st); i++) {
        const ToolDisk at = { .path = lower.path, .map = map };
        g_autofree char *below = tool_disk_image(&at);
        TtIo *io;

        found = is_file(&st, at.path) || is_file(&st, below) || is_noted(&st, at.path);
        if (found || !below) {
            break;
        }
        g_free(lower.path);
        lower.path = g_steal_pointer(&below);
        tt_blockmap_free(lower.map);
        map = lower.map = NULL;
        if (tt_io_posix_open(lower.path, &io, NULL) == TT_OK) {
            (void)tt_blockmap_open(io, &lower.map, NULL);       /* NULL: not of this kind */
            tt_io_close(io);
            map = lower.map;
        }
    }
    tool_disk_close(&lower);
    return found;
}

static int export_to(const ToolArgs *a, const ToolDisk *d, const ToolDiskAt *at,
                     const char *out)
{
    const char *format = format_of(a, out);
    g_autofree char *options = tool_disk_options(d, at);
    g_autofree char *whole = tool_whole_path(out);
    g_autofree char *part = whole ? g_strconcat(whole, ".part", NULL) : NULL;
    bool force = tool_has(a, "--force");
    struct stat st;
    int fd;

    if (!format || !options || !part) {
        return format ? TOOL_PROBLEM : TOOL_USAGE;
    }
    if (!tool_is_fit(whole)) {
        return TOOL_PROBLEM;
    }
    if (!force && faccessat(AT_FDCWD, whole, F_OK, AT_SYMLINK_NOFOLLOW) == 0) {
        return tool_complain("'%s' exists: give another name, or --force to write over it",
                             out);
    }
    if (!stat(whole, &st) && !S_ISREG(st.st_mode)) {
        return tool_complain("'%s' is not a file: export writes a new one, and would put it "
                             "in that place. Give another name, and copy it from there "
                             "with dd or qemu-img", out);
    }
    if (is_own(d, whole)) {
        return tool_complain("'%s' is the disk itself, or an image below it, and would be "
                             "lost: give another name", out);
    }
    fd = open(part, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666);
    if (fd < 0) {
        return tool_complain("cannot create '%s': %s%s", part, g_strerror(errno),
                             errno == EEXIST ? "; it belongs to an export that was "
                                               "killed or still runs: remove it if none "
                                               "runs" : "");
    }
    close(fd);
    if (!convert(a, options, format, part) || !make_durable(part) ||
        !give_name(part, whole, force)) {
        unlink(part);
        return TOOL_PROBLEM;
    }
    if (tool_has(a, "--json")) {
        tool_json_begin();
        printf("\"version\": %" PRIu32 ", \"is_now\": %s, \"what\": ", at->id,
               tool_json_bool(at->is_now));
        tool_json_string(at->words);
        printf(", \"format\": \"%s\", \"file\": ", format);
        tool_json_string(out);
        printf("}\n");
    } else {
        g_autofree char *name = tt_replace_controls(g_strdup(at->words), '?');

        printf("%s is in %s (%s)\n", name, out, format);
    }
    if (at->is_now && tt_blockmap_damage(d->map)) {
        return tool_complain("the disk is damaged, and what is in '%s' is only what can be "
                             "read of it: it may be older, or lack what was written last",
                             out);
    }
    return TOOL_FINE;
}

int tool_disk_export(const ToolArgs *a, const ToolDisk *d)
{
    ToolDiskAt at;
    int result = tool_disk_at_option(a, d, &at);

    if (result == TOOL_FINE) {
        result = export_to(a, d, &at, a->operand[2]);
    }
    g_free(at.words);
    return result;
}

/* ---- serve ---- */

static int listen_unix(const char *path)
{
    struct sockaddr_un addr = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    mode_t mask;
    bool ok;

    if (strlen(path) >= sizeof(addr.sun_path)) {
        tool_complain("the path of a socket can have at most %zu bytes: give a shorter "
                      "one",
                      sizeof(addr.sun_path) - 1);
        close(fd);
        return -1;
    }
    strcpy(addr.sun_path, path);
    mask = umask(077);                  /* for the user alone */
    ok = fd >= 0 && bind(fd, (struct sockaddr *)&addr, sizeof(addr)) == 0;
    umask(mask);
    if (ok && listen(fd, 16) == 0) {
        return fd;
    }
    tool_complain("cannot make the socket '%s': %s%s", path, g_strerror(errno),
                  errno == EADDRINUSE ? ": there is such a file; give another name, or "
                                        "remove it if nothing serves there" : "");
    close(fd);
    return -1;
}

/* On loopback; port 0: a free one. */
static int listen_tcp(uint64_t *port)
{
    struct sockaddr_in addr = {
        .sin_family = AF_INET, .sin_port = htons(*port),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
    };
    socklen_t len = sizeof(addr);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;

    if (fd >= 0) {
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    }
    if (fd < 0 || bind(fd, (struct sockaddr *)&addr, sizeof(addr)) || listen(fd, 16) ||
        getsockname(fd, (struct sockaddr *)&addr, &len)) {
        tool_complain("cannot listen on port %" PRIu64 " of 127.0.0.1: %s", *port,
                      g_strerror(errno));
        close(fd);
        return -1;
    }
    *port = ntohs(addr.sin_port);
    return fd;
}

static void say_where(const ToolArgs *a, const ToolDiskAt *at, const char *path,
                      uint64_t port)
{
    g_autofree char *whole = path ? tt_io_posix_absolute(path) : NULL;
    g_autofree char *quoted = whole ? g_uri_escape_string(whole, "/", true) : NULL;
    g_autofree char *uri = path ?
        g_strconcat("nbd+unix:///?socket=", quoted, NULL) :
        g_strdup_printf("nbd://127.0.0.1:%" PRIu64, port);

    if (tool_has(a, "--json")) {
        tool_json_begin();
        printf("\"version\": %" PRIu32 ", \"is_now\": %s, \"what\": ", at->id,
               tool_json_bool(at->is_now));
        tool_json_string(at->words);
        printf(", \"uri\": ");
        tool_json_string(uri);
        printf("}\n");
    } else {
        g_autofree char *name = tt_replace_controls(g_strdup(at->words), '?');

        printf("%s is read-only at %s\n", name, uri);
    }
    fflush(stdout);
}

static volatile sig_atomic_t is_over;

/* Comes again each second: the first one may have come just before we wait. */
static void end(int signal)
{
    is_over = 1;
    alarm(1);
}

/* Until qemu-nbd ends, or somebody ends us, or the time is over. */
static int watch(const ToolArgs *a, pid_t server, unsigned seconds)
{
    struct sigaction act = { .sa_handler = end };       /* and no restart */
    int status = 0;

    sigaction(SIGINT, &act, NULL);
    sigaction(SIGTERM, &act, NULL);
    if (!tool_is_ignored(SIGHUP)) {
        sigaction(SIGHUP, &act, NULL);
    }
    sigaction(SIGALRM, &act, NULL);
    alarm(seconds);
    while (!is_over && waitpid(server, &status, 0) < 0 && errno == EINTR) {
    }
    if (is_over) {
        kill(server, SIGTERM);
        while (waitpid(server, &status, 0) < 0 && errno == EINTR) {
        }
        return TOOL_FINE;
    }
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? TOOL_FINE :
           tool_complain("qemu-nbd could not serve the disk");
}

static int serve(const ToolArgs *a, const ToolDisk *d, const ToolDiskAt *at,
                 uint64_t port, unsigned seconds)
{
    const char *path = tool_value(a, "--socket");
    int listener = path ? listen_unix(path) : listen_tcp(&port);
    int result = TOOL_PROBLEM;
    pid_t server;

    if (listener < 0) {
        return TOOL_PROBLEM;
    }
    server = tool_disk_serve(a, d, at, listener, tool_has(a, "--keep"));
    close(listener);
    if (server > 0) {
        say_where(a, at, path, port);
        result = watch(a, server, seconds);
        if (at->is_now && tt_blockmap_damage(d->map)) {
            result = TOOL_PROBLEM;      /* which has been said */
        }
    }
    if (path) {
        unlink(path);
    }
    return result;
}

int tool_disk_serve_command(const ToolArgs *a, const ToolDisk *d)
{
    uint64_t port, seconds;
    ToolDiskAt at;
    int result;

    if (tool_has(a, "--socket") == tool_has(a, "--port")) {
        return tool_usage(a->command, "give %s--socket PATH or --port N (0: any free port)%s",
                          tool_has(a, "--port") ? "either " : "",
                          tool_has(a, "--port") ? ", not both" : "");
    }
    if (!tool_number_option(a, "--port", 0, &port) ||
        !tool_number_option(a, "--seconds", 0, &seconds)) {
        return TOOL_USAGE;
    }
    if (port > 65535 || seconds > UINT32_MAX) {
        return tool_usage(a->command, "%s is too large", port > 65535 ? "--port" :
                          "--seconds");
    }
    result = tool_disk_at_option(a, d, &at);
    if (result == TOOL_FINE) {
        result = serve(a, d, &at, port, seconds);
    }
    g_free(at.words);
    return result;
}
