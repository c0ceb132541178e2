/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tt page --screenshots: a replay that stands at some positions, one after the other, and
 * shows its screen. QEMU writes each picture into a file without a name, which libpng makes
 * smaller.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE         /* memfd_create */
#endif
#include "tt-tool-page.h"
#include "tt-tool-qmp.h"
#include "run/tt-marks.h"
#include "timeline/tt-spread.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define START_SECONDS   600
#define ANSWER_SECONDS  60
#define GOTO_SECONDS    86400
#define NO_SCREEN       "there are no pictures: the guest has no screen: its machine has no " \
                        "display device that a replay can show, or the guest did not " \
                        "switch it on"

typedef struct Screen {
    ToolQmp *qmp;
    pid_t pid;
    int picture, said;          /* files of ours: of the screen, of QEMU's messages */
} Screen;

/* ---- where ---- */

static void add_pos(GArray *to, uint64_t pos)
{
    g_array_append_val(to, pos);
}

static void add_mark(void *opaque, const char *name, uint64_t pos)
{
    add_pos(opaque, pos);
}

static void add_full(GArray *to, const char *run, const TtManifest *m)
{
    g_autofree TtCheckpointInfo *infos = NULL;
    TtPageStore *store = NULL;
    size_t n = 0;

    if (tt_runstore_open(run, m, 0, &store, NULL) == TT_OK) {
        n = tt_pagestore_count(store);
        infos = g_new0(TtCheckpointInfo, n + 1);
        n = tt_pagestore_list(store, infos, n);
    }
    for (size_t i = 0; i < n; i++) {
        if (infos[i].flags & TT_CHECKPOINT_FULL) {
            add_pos(to, infos[i].pos);
        }
    }
    tt_pagestore_free(store);
}

static size_t choose(uint64_t *at, unsigned n, const char *run, const TtManifest *m,
                     const PageLog *p)
{
    g_autoptr(GArray) named = g_array_new(false, false, sizeof(uint64_t));
    TtDiag unused;

    tt_marks_of_run(run, add_mark, named, &unused);
    add_full(named, run, m);
    return tt_spread((const uint64_t *)named->data, named->len, p->start, p->damaged_at, at,
                     n);
}

/* ---- QEMU ---- */

static void child(char **argv, int qmp, const Screen *s, pid_t parent)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) {          /* it has ended before that */
        _exit(127);
    }
    dup2(open("/dev/null", O_RDONLY), 0);
    dup2(s->said, 1);
    dup2(s->said, 2);
    fcntl(qmp, F_SETFD, 0);
    fcntl(s->picture, F_SETFD, 0);
    execv(argv[0], argv);
    fprintf(stderr, "cannot run '%s': %s\n", argv[0], g_strerror(errno));
    _exit(127);
}

static bool start(Screen *s, const char *qemu, const char *run)
{
    g_autofree char *dir = tool_option_value(run), *replay = NULL, *socket = NULL;
    pid_t parent = getpid();
    int ends[2];

    if (!dir) {
        return false;
    }
    s->picture = memfd_create("tt-screen", MFD_CLOEXEC);
    s->said = memfd_create("tt-said", MFD_CLOEXEC);
    if (s->picture < 0 || s->said < 0 ||
        socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends)) {
        tool_complain("cannot make a file for the pictures: %s", g_strerror(errno));
        return false;
    }
    replay = g_strdup_printf("replay,dir=%s", dir);
    socket = g_strdup_printf("socket,id=tt-page,fd=%d", ends[1]);
    char *argv[] = {
        (char *)qemu, "-tt", replay, "-S", "-nodefaults", "-display", "none", "-serial",
        "none", "-monitor", "none", "-chardev", socket, "-mon",
        "chardev=tt-page,mode=control", NULL,
    };

    fflush(stdout);
    s->pid = fork();
    if (s->pid == 0) {
        child(argv, ends[1], s, parent);
    }
    close(ends[1]);
    s->qmp = tool_qmp_new(ends[0]);
    if (s->pid < 0) {
        tool_complain("cannot start a process: %s", g_strerror(errno));
    }
    return s->pid > 0;
}

static void end(Screen *s)
{
    if (s->pid > 0) {
        kill(s->pid, SIGKILL);          /* it only reads */
        while (waitpid(s->pid, NULL, 0) < 0 && errno == EINTR) {
        }
    }
    tool_qmp_free(s->qmp);
    if (s->picture >= 0) {
        close(s->picture);
    }
    if (s->said >= 0) {
        close(s->said);
    }
}

/* The first line of QEMU's that is no warning, without its name. NULL: there is none. */
static char *words_of(const char *text)
{
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);

    for (char **l = lines; *l; l++) {
        const char *name = strstr(*l, "qemu-system-x86_64: ");
        const char *words = name ? name + strlen("qemu-system-x86_64: ") : *l;

        if (*words && !g_str_has_prefix(words, "warning: ")) {
            return g_strdup(words);
        }
    }
    return NULL;
}

/* With @why; if QEMU has ended, with what it said itself. */
static void complain(const Screen *s, const char *what, const char *why)
{
    bool has_ended = !strcmp(why, "it has closed the connection");
    char text[4096] = "";
    ssize_t n = has_ended ? pread(s->said, text, sizeof(text) - 1, 0) : 0;
    g_autofree char *words = words_of(n > 0 ? text : why);

    tool_complain("%s: %s", what, words ?: why);
}

static bool ask(const Screen *s, const char *command, const char *arguments,
                unsigned seconds, char **answer)
{
    g_autofree char *why = NULL;

    if (!tool_qmp_do(s->qmp, command, arguments, seconds, answer, &why)) {
        g_autofree char *what = g_strdup_printf("QEMU does not carry out %s", command);

        complain(s, what, why);
        return false;
    }
    return true;
}

/* ---- a picture ---- */

#ifdef TT_HAVE_LIBPNG
#include <png.h>

static char *png_of(const uint8_t *rgb, PageShot *shot)
{
    png_image image = {
        .version = PNG_IMAGE_VERSION, .width = shot->width, .height = shot->height,
        .format = PNG_FORMAT_RGB,
    };
    png_alloc_size_t len = PNG_IMAGE_PNG_SIZE_MAX(image);
    g_autofree uint8_t *png = g_malloc(len);

    return png_image_write_to_memory(&image, png, &len, 0, rgb, 0, NULL) ?
        g_base64_encode(png, len) : NULL;
}

static bool can_write(void)
{
    return true;
}
#else
static char *png_of(const uint8_t *rgb, PageShot *shot)
{
    return NULL;
}

static bool can_write(void)
{
    return false;
}
#endif

/* "P6", width, height and 255, and then the pixels. NULL: it is none. */
static char *take_ppm(const char *ppm, size_t len, PageShot *shot)
{
    char head[64] = "";
    unsigned end = 0;

    memcpy(head, ppm, MIN(len, sizeof(head) - 1));
    if (sscanf(head, "P6 %5u %5u 255%n", &shot->width, &shot->height, &end) != 2 || !end ||
        !shot->width || !shot->height ||
        len - end - 1 != (size_t)shot->width * shot->height * 3) {
        return NULL;
    }
    return png_of((const uint8_t *)ppm + end + 1, shot);
}

static char *read_picture(const Screen *s, PageShot *shot)
{
    struct stat st;
    char *ppm, *png;

    if (fstat(s->picture, &st) || !st.st_size) {
        return NULL;
    }
    ppm = mmap(NULL, st.st_size, PROT_READ, MAP_PRIVATE, s->picture, 0);
    if (ppm == MAP_FAILED) {
        return NULL;
    }
    png = take_ppm(ppm, st.st_size, shot);
    munmap(ppm, st.st_size);
    return png;
}

/* A screen that did not change is in the page once. */
static void keep(PageShots *s, PageShot *shot)
{
    for (unsigned i = 0; i < s->all->len; i++) {
        PageShot *other = &g_array_index(s->all, PageShot, i);

        if (other->png && !strcmp(other->png, shot->png)) {
            shot->same_as = i;
            g_clear_pointer(&shot->png, g_free);
            break;
        }
    }
    g_array_append_val(s->all, *shot);
}

/* False: said why not. */
static bool take(PageShots *to, const Screen *s, uint64_t pos)
{
    PageShot shot = { .pos = pos, .same_as = to->all->len };
    g_autofree char *file = g_strdup_printf("{\"filename\": \"/proc/self/fd/%d\"}",
                                            s->picture);
    g_autofree char *state = NULL;

    if (!ask(s, "screendump", file, ANSWER_SECONDS, NULL) ||
        !ask(s, "query-tt", NULL, ANSWER_SECONDS, &state)) {
        return false;
    }
    if (strstr(state, "\"screen\": false")) {
        return true;                    /* not yet, or never */
    }
    shot.png = read_picture(s, &shot);
    if (!shot.png) {
        tool_complain("QEMU made no picture of the screen at position %" PRIu64, pos);
        return false;
    }
    keep(to, &shot);
    return true;
}

/* ---- all ---- */

static void miss_from(PageShots *to, uint64_t pos, const char *why, int result)
{
    to->note = g_strdup_printf("pictures from position %" PRIu64 " on are missing: %s", pos,
                               why);
    to->result = result;
}

/* False: said why not. */
static bool take_next(PageShots *to, const Screen *s, uint64_t pos)
{
    g_autofree char *place = g_strdup_printf("{\"position\": %" PRIu64 "}", pos);
    g_autofree char *answer = NULL;

    if (!ask(s, "tt-goto", place, GOTO_SECONDS, &answer)) {
        return false;
    }
    if (strstr(answer, "\"reason\": \"target\"")) {
        return take(to, s, pos);
    }
    if (strstr(answer, "\"reason\": \"diverged\"")) {
        miss_from(to, pos, "the replay is not exact (see tt verify)", TOOL_DIVERGED);
    } else if (strstr(answer, "\"reason\": \"damaged\"")) {
        miss_from(to, pos, "the run is damaged (see tt check)", TOOL_PROBLEM);
    } else {
        miss_from(to, pos, "the replay did not get there", TOOL_PROBLEM);
    }
    return true;
}

static bool take_all(PageShots *to, const Screen *s, const uint64_t *at, size_t n)
{
    bool ok = true;

    for (size_t i = 0; ok && i < n && !to->note; i++) {
        ok = take_next(to, s, at[i]);
    }
    if (ok && !to->note && !to->all->len) {
        to->note = g_strdup(NO_SCREEN);
    }
    return ok;
}

static bool replay(PageShots *to, const ToolArgs *a, const char *run, const uint64_t *at,
                   size_t n)
{
    g_autofree char *qemu = tool_find_qemu(a), *why = NULL;
    Screen screen = { .picture = -1, .said = -1 };
    bool ok = false;

    if (qemu && start(&screen, qemu, run)) {
        ok = tool_qmp_greet(screen.qmp, START_SECONDS, &why);
        if (!ok) {
            complain(&screen, "the replay for the pictures does not begin", why);
        }
        ok = ok && take_all(to, &screen, at, n);
    }
    end(&screen);
    return ok;
}

bool page_shots_take(PageShots *s, const ToolArgs *a, const char *run, const TtManifest *m,
                     const PageLog *p, unsigned n)
{
    g_autofree uint64_t *at = g_new(uint64_t, n + 1);
    bool ok = true;

    if (!can_write()) {
        tool_complain("--screenshots is not available: this tt was built without libpng");
        return false;
    }
    if (p->damaged_at > p->start || p->damage.status == TT_OK) {
        ok = replay(s, a, run, at, choose(at, n, run, m, p));
    }
    if (ok && p->damage.status != TT_OK && p->damaged_at < p->end) {
        g_clear_pointer(&s->note, g_free);
        miss_from(s, p->damaged_at, "the log is damaged (see tt check)", TOOL_PROBLEM);
    }
    return ok;
}

void page_shots_init(PageShots *s)
{
    *s = (PageShots) { .all = g_array_new(false, false, sizeof(PageShot)) };
}

void page_shots_cleanup(PageShots *s)
{
    for (unsigned i = 0; i < s->all->len; i++) {
        g_free(g_array_index(s->all, PageShot, i).png);
    }
    g_array_unref(s->all);
    g_free(s->note);
}
