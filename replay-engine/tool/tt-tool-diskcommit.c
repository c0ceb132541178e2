/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tt disk commit: what the guest wrote goes from a run, or from one disk, into the image
 * below, by qemu-img. The disk keeps it as well, so that it can be done again until it
 * has succeeded. All that can be found out before comes before the first byte that is
 * written; how far each disk has come is noted in the run (run/tt-bases.h).
 */
#include "tt-tool-disk.h"
#include "run/tt-runlock.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct Target {
    ToolDisk d;
    char *name, *image;         /* image: NULL if it is no file */
    TtBase *base;               /* of the list; NULL: not known */
    bool is_done;               /* the image has all of it already */
    int lock;                   /* on the image, from before it is checked; -1: none */
    dev_t dev;                  /* of the image */
    ino_t ino;
    uint64_t needs_bytes;       /* on that file system, at least */
} Target;

typedef struct Commit {
    const ToolArgs *args;
    const char *path;           /* as it was given */
    char *program, *folder;     /* folder: of the disks; NULL: it is nobody's disk */
    bool is_forced, is_many;
    bool is_unnoted;            /* what was done could not be noted; that has been said */
    TtBases bases;
    GArray *targets;            /* of Target */
} Commit;

/* ---- which disks ---- */

static void clear_target(void *p)
{
    Target *t = p;

    tool_disk_close(&t->d);
    g_free(t->name);
    g_free(t->image);
    if (t->lock >= 0) {
        close(t->lock);
    }
}

/* A run's, by name; or the one disk itself. NULL: said why. */
static GPtrArray *find_disks(const Commit *c)
{
    const char *wanted = tool_value(c->args, "--disk");
    GPtrArray *disks;
    char *disk;

    if (g_file_test(c->path, G_FILE_TEST_IS_DIR)) {
        if (!wanted) {
            return tool_disks_of_run(c->path);
        }
        disk = tool_disk_of_run(c->path, wanted);
    } else if (wanted) {
        tool_complain("--disk is only for a run, and '%s' is not one", c->path);
        return NULL;
    } else {
        disk = g_strdup(c->path);
    }
    if (!disk) {
        return NULL;
    }
    disks = g_ptr_array_new_with_free_func(g_free);
    g_ptr_array_add(disks, disk);
    return disks;
}

/* The log of a run names what was read from the images, as they were. */
static bool needs_images(const char *folder)
{
    g_autofree char *run = g_path_get_dirname(folder);
    g_autofree char *manifest = g_build_filename(run, "manifest", NULL);

    return tt_manifest_has(manifest, TT_FEATURE_DISKS);
}

/* Of a window that was saved, the disks are those of the run itself. */
static bool is_recorded_now(const char *folder)
{
    char *whole = realpath(folder, NULL);
    g_autofree char *run = whole ? g_path_get_dirname(whole) : NULL;

    free(whole);
    return run && tt_runlock_is_held(run);
}

/* ---- may it be written? ---- */

/* On a version of another disk, which must not change: that is a branch's. */
static bool has_image_to_write(const Target *t)
{
    const char *why = NULL;
    TtDiskInfo info;

    tt_blockmap_info(t->d.map, &info);
    if (tt_blockmap_damage(t->d.map)) {
        why = "damaged";
    } else if (!info.backing) {
        why = "not on top of an image";
    } else if (info.backing_format && strchr(info.backing_format, '@')) {
        why = "the disk of a branch, on top of its parent's, which never changes";
    }
    if (why) {
        tool_complain("'%s' is %s: use 'tt disk export' to get what it holds", t->d.path,
                      why);
    }
    return !why && tool_disk_has_image(&t->d);
}

static void complain_changed(const Commit *c, const Target *t, const char *changed)
{
    g_autofree char *option = c->is_many ? g_strdup_printf(" --disk %s", t->name) :
        g_strdup("");

    if (t->base->state == TT_BASE_BEGUN) {
        tool_complain("a commit of the disk '%s' was killed, and the image '%s' has changed "
                      "since it began: if nobody else has written to the image, repeat it "
                      "with --force; if somebody has, 'tt disk export %s OUT%s' makes a disk "
                      "of its own", t->name, changed, c->path, option);
    } else if (t->base->state == TT_BASE_FRESH) {
        tool_complain("the image '%s' has changed since the run began to use it, and what "
                      "the guest wrote to the disk '%s' would be mixed with that: 'tt disk "
                      "export %s OUT%s' makes a disk of its own, and --force commits all "
                      "the same", changed, t->name, c->path, option);
    } else {
        tool_complain("the image '%s' has changed since the disk '%s' was %s, and to commit "
                      "it again would undo a part of that: --force does it all the same",
                      changed, t->name, t->base->state == TT_BASE_DONE ? "committed" :
                      "committed in part");
    }
}

/* Is the image what it was? Or has it all of the disk already? */
static bool check_base(const Commit *c, Target *t)
{
    g_autofree char *changed = NULL;
    TtDiskInfo info;

    if (!t->base) {
        return !c->folder || c->is_forced ||
            tool_complain("the run does not say what the image of the disk '%s' looked like "
                          "when it was recorded, as '%s/" TT_BASES_NAME "' %s: if nobody "
                          "has written to the image since, give --force", t->name,
                          c->folder, c->bases.is_there ? "does not name it" :
                          "is missing") == TOOL_FINE;
    }
    tt_blockmap_info(t->d.map, &info);
    changed = tt_base_changed(t->base, c->folder, info.backing);
    t->is_done = t->base->state == TT_BASE_DONE && !changed && t->base->n_files &&
        tt_base_has_disk(t->base, t->d.path) && !c->is_forced;
    if (c->is_forced || t->is_done) {
        return true;
    }
    if (t->base->state == TT_BASE_DONE && !t->base->n_files) {
        tool_complain("the disk '%s' was committed before, and whether its image '%s' has "
                      "changed since cannot be told, as it is no file: --force commits it "
                      "again", t->name, info.backing);
        return false;
    }
    if (changed) {
        complain_changed(c, t, changed);
    }
    return !changed;
}

/* Two commits into one image would both find it as it was. The lock is not one of QEMU's,
 * which are of another kind. */
static bool lock_image(const Commit *c, Target *t)
{
    struct stat st;

    if (!t->image || stat(t->image, &st)) {
        return true;
    }
    t->dev = st.st_dev;
    t->ino = st.st_ino;
    if (!S_ISREG(st.st_mode)) {
        return true;
    }
    for (guint i = 0; i < c->targets->len; i++) {
        const Target *other = &g_array_index(c->targets, Target, i);

        if (other->lock >= 0 && other->dev == t->dev && other->ino == t->ino) {
            return true;
        }
    }
    t->lock = open(t->image, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (t->lock >= 0 && flock(t->lock, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK) {
        tool_complain("another 'tt disk commit' writes to the image '%s': wait for its end",
                      t->image);
        return false;
    }
    return true;
}

static bool check_use(const Target *t)
{
    if (tool_disk_is_in_use(t->d.path)) {
        tool_complain("the disk '%s' is in use: end the VM or the 'tt disk serve' that has "
                      "it open", t->d.path);
        return false;
    }
    if (t->image && access(t->image, W_OK)) {
        tool_complain("cannot write to the image '%s': %s", t->image, g_strerror(errno));
        return false;
    }
    if (t->image && tool_disk_is_in_use(t->image)) {
        tool_complain("the image '%s' is in use: end the VM or the program that has it open",
                      t->image);
        return false;
    }
    return true;
}

/* Two stores of one run on one image: plugged in, plugged out, plugged in again. */
static bool check_others(const Commit *c, const Target *t)
{
    for (guint i = 0; i < c->targets->len && t->image && !c->is_forced; i++) {
        const Target *other = &g_array_index(c->targets, Target, i);

        if (other->image && other->dev == t->dev && other->ino == t->ino) {
            tool_complain("the disks '%s' and '%s' are both on top of the image '%s', which "
                          "can get only one of them: say which with --disk NAME",
                          other->name, t->name, t->image);
            return false;
        }
    }
    return true;
}

static bool check_room(const Commit *c, const Target *t)
{
    uint64_t needs = t->needs_bytes, has;
    struct statvfs fs;

    if (!t->image || c->is_forced || statvfs(t->image, &fs)) {
        return true;
    }
    for (guint i = 0; i < c->targets->len; i++) {
        const Target *other = &g_array_index(c->targets, Target, i);

        needs += !other->is_done && other->dev == t->dev ? other->needs_bytes : 0;
    }
    has = (uint64_t)(geteuid() ? fs.f_bavail : fs.f_bfree) * fs.f_frsize;
    if (needs > has) {
        g_autofree char *n = tool_bytes(needs), *free = tool_bytes(has);

        tool_complain("the image '%s' needs room: %s for all that is committed there, and "
                      "%s are free: make room, or try it all the same with --force",
                      t->image, n, free);
    }
    return needs <= has;
}

static bool check(const Commit *c, Target *t)
{
    if (!has_image_to_write(t)) {
        return false;
    }
    t->image = tool_disk_image(&t->d);
    if (!lock_image(c, t) || !check_base(c, t)) {
        return false;
    }
    if (t->is_done) {
        return check_others(c, t);
    }
    if (t->image) {
        t->needs_bytes = tool_disk_needs_bytes(&t->d, t->image);
    }
    return check_use(t) && check_others(c, t) && check_room(c, t);
}

/* All of them, before the first one is written. */
static bool prepare(Commit *c, const GPtrArray *disks)
{
    bool ok = true;
    TtDiag diag;

    if (c->folder && !tool_disk_lock_folder(c->folder)) {
        return false;
    }
    if (c->folder && tt_bases_load(c->folder, &c->bases, &diag) != TT_OK &&
        !c->is_forced) {
        tool_complain("%s: whether an image has changed cannot be told; --force commits all "
                      "the same", diag.text);
        return false;
    }
    for (guint i = 0; ok && i < disks->len; i++) {
        Target t = { .name = tool_disk_name(disks->pdata[i]), .lock = -1 };

        ok = tool_disk_open_path(disks->pdata[i], &t.d);
        t.base = ok && c->folder ? tt_bases_find(&c->bases, t.name) : NULL;
        ok = ok && check(c, &t);
        g_array_append_val(c->targets, t);
    }
    return ok;
}

/* ---- doing it ---- */

static void be_qemu_img(const char *program, const char *disk)
{
    const char *const argv[] = {
        program, "commit", "-q", "-d", "-f", "tt", disk, NULL,
    };

    prctl(PR_SET_PDEATHSIG, SIGTERM);
    execv(program, (char **)argv);
    fprintf(stderr, "tt: cannot run '%s': %s\n", program, g_strerror(errno));
    _exit(127);
}

static bool run_qemu_img(const char *program, const char *disk)
{
    int status = 0;
    pid_t pid;

    fflush(stdout);
    pid = fork();
    if (pid == 0) {
        be_qemu_img(program, disk);
    }
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    return pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* False: said why. */
static bool note(Commit *c, Target *t, TtBaseState state, bool looks_again)
{
    TtDiskInfo info;
    TtDiag diag;

    if (!t->base) {
        return true;
    }
    t->base->state = state;
    if (looks_again) {
        tt_blockmap_info(t->d.map, &info);
        tt_base_look_again(t->base, c->folder, info.backing, t->d.path);
    }
    if (tt_bases_save(c->folder, &c->bases, &diag) != TT_OK) {
        tool_problem(&diag);
        return false;
    }
    return true;
}

/* *@is_partial: the image has a part of it, or may have. */
static bool commit(Commit *c, Target *t, bool *is_partial)
{
    TtBaseState was = t->base ? t->base->state : TT_BASE_FRESH;
    TtBaseFile before = { 0 }, after = { 0 };
    bool is_known = t->image && tt_basefile_look(t->image, &before), ok;

    if (!note(c, t, TT_BASE_BEGUN, false)) {
        return false;
    }
    ok = run_qemu_img(c->program, t->d.path);
    *is_partial = !ok && !(is_known && tt_basefile_look(t->image, &after) &&
                           memcmp(&before, &after, sizeof(before)) == 0);
    if (!ok && !*is_partial) {
        note(c, t, was, false);
    } else if (!note(c, t, ok ? TT_BASE_DONE : TT_BASE_PARTIAL, true) && ok) {
        tool_complain("the image '%s' has all that the guest wrote, but the run cannot note "
                      "that: make room there, and repeat the command with --force",
                      t->image ? t->image : t->name);
        c->is_unnoted = true;
        return false;
    }
    return ok;
}

static const char *image_of(const Target *t)
{
    TtDiskInfo info;

    tt_blockmap_info(t->d.map, &info);
    return t->image ? t->image : info.backing;
}

/* The @n first ones are complete. */
static void complain_partial(const Commit *c, unsigned n, bool is_partial)
{
    g_autoptr(GString) what = g_string_new(NULL);
    bool is_run = g_file_test(c->path, G_FILE_TEST_IS_DIR);

    for (guint i = 0; i < c->targets->len; i++) {
        g_string_append_printf(what, "%s'%s' %s", i ? ", " : "",
                               image_of(&g_array_index(c->targets, Target, i)),
                               i < n ? "has all of it" : i == n && is_partial ?
                               "only a part" : "is as it was");
    }
    tool_complain("what the guest wrote could not be written into the image%s: %s; the %s "
                  "still has all of it: mend that, and repeat the same command",
                  c->targets->len > 1 ? "s" : "", what->str, is_run ? "run" : "disk");
}

static bool commit_all(Commit *c)
{
    bool is_partial = false;

    for (guint i = 0; i < c->targets->len; i++) {
        Target *t = &g_array_index(c->targets, Target, i);

        if (!t->is_done && !commit(c, t, &is_partial)) {
            if (!c->is_unnoted) {
                complain_partial(c, i, is_partial);
            }
            return false;
        }
    }
    return true;
}

/* ---- the command ---- */

static void say_done(const Commit *c)
{
    unsigned before = 0, all = c->targets->len;
    g_autofree char *n = NULL;

    for (guint i = 0; i < all; i++) {
        before += g_array_index(c->targets, Target, i).is_done;
    }
    n = tool_count(all - before, "disk");
    if (tool_has(c->args, "--json")) {
        tool_json_begin();
        printf("\"committed\": %u, \"before\": %u}\n", all - before, before);
    } else if (before == all) {
        printf("nothing to do: the image%s what the guest wrote since an earlier "
               "commit\n", all > 1 ? "s have contained" : " has contained");
    } else {
        printf("%s committed%s: the images now contain what the guest wrote\n", n,
               before ? ", the others were before" : "");
    }
}

static bool is_allowed(const Commit *c)
{
    if (c->folder && is_recorded_now(c->folder)) {
        tool_complain("'%s' is being recorded: its disks can be committed when that has "
                      "ended", c->path);
        return false;
    }
    if (c->folder && !c->is_forced && needs_images(c->folder)) {
        tool_complain("the run of '%s' reads from the images as they were "
                      "(disk-reads=store), and could not be replayed any more: 'tt pack' "
                      "it first, then use --force", c->path);
        return false;
    }
    return true;
}

int tool_disk_commit(const ToolArgs *a, const char *path)
{
    Commit c = {
        .args = a, .path = path, .is_forced = tool_has(a, "--force"),
        .program = tool_find_beside(a->program, "qemu-img"),
        .targets = g_array_new(false, false, sizeof(Target)),
    };
    GPtrArray *disks = c.program ? find_disks(&c) : NULL;
    bool ok = disks;

    g_array_set_clear_func(c.targets, clear_target);
    if (ok) {
        c.folder = tool_disk_folder(disks->pdata[0]);
        c.is_many = disks->len > 1;
        ok = is_allowed(&c) && prepare(&c, disks) && commit_all(&c);
    }
    if (ok) {
        say_done(&c);
    }
    if (disks) {
        g_ptr_array_free(disks, true);
    }
    g_array_free(c.targets, true);
    tt_bases_cleanup(&c.bases);
    g_free(c.program);
    g_free(c.folder);
    return ok ? TOOL_FINE : TOOL_PROBLEM;
}
