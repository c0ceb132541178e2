/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tt disk diff: where there are file systems, on the whole disk or in its partitions. What
 * is in them may be meant to do harm, so they are compared in a process with limits, which
 * hands back text.
 */
#include "tt-tool-disk.h"

#include <errno.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef TT_HAVE_EXT2FS

#include "tt-tool-extio.h"

#define SUPER_MAGIC_AT  1080
#define CHILD_BYTES     (4ull << 30)    /* of address space */
#define CHILD_SECONDS   3600            /* of CPU time */

/* Is there a file system of ext2, 3 or 4? */
static bool is_ext_at(TtIo *disk, uint64_t start, uint64_t len)
{
    uint8_t magic[2];
    size_t got = 0;

    return len > SUPER_MAGIC_AT + 2 &&
        disk->ops->read_at(disk, start + SUPER_MAGIC_AT, magic, 2, &got, NULL) == TT_OK &&
        got == 2 && magic[0] == 0x53 && magic[1] == 0xef;
}

/* ---- all volumes ---- */

/* Where file systems may be on one of the disks: the partitions, or (number 0) all of it. */
typedef struct Volumes {
    TtDiskPart *part;
    unsigned n;
} Volumes;

/* False: it cannot be read, which has been said. */
static bool find_volumes(TtIo *disk, const char *name, Volumes *v)
{
    uint64_t bytes = 0;
    TtDiag diag;
    TtStatus st = disk->ops->size(disk, &bytes, &diag);

    v->part = g_new0(TtDiskPart, TT_DISKPARTS_MAX + 1);
    if (st == TT_OK && !is_ext_at(disk, 0, bytes)) {
        st = tt_diskparts_read(disk, v->part, &v->n, &diag);
        st = st == TT_ERR_IO ? st : TT_OK;      /* no table, or a damaged one */
    }
    if (st != TT_OK) {
        tool_complain("'%s' cannot be read: %s", name, diag.text);
        v->n = 0;
        return false;
    }
    if (!v->n) {
        v->part[0] = (TtDiskPart) { 0, 0, bytes };
        v->n = 1;
    }
    return true;
}

static const TtDiskPart *find_part(const Volumes *v, uint32_t number)
{
    for (unsigned i = 0; i < v->n; i++) {
        if (v->part[i].number == number) {
            return &v->part[i];
        }
    }
    return NULL;
}

static bool is_ext(TtIo *disk, const TtDiskPart *p)
{
    return p && is_ext_at(disk, p->start, p->len);
}

typedef struct Comparison {
    TtIo **disk;
    const char *const *name;
    const GArray *changed;
    bool json;
    unsigned n_volumes;
} Comparison;

/* One volume, which the old disk or the new one may not have. */
static int compare_volume(Comparison *c, const TtDiskPart *old, const TtDiskPart *new)
{
    const TtDiskPart *any = new ? new : old;
    g_autofree char *where = any->number ?
        g_strdup_printf("partition %u", any->number) : g_strdup("the whole disk");
    bool is_old = is_ext(c->disk[0], old), is_new = is_ext(c->disk[1], new);
    ToolFileReport r = { .json = c->json };
    int found;

    if (!is_old && !is_new) {
        return TOOL_FINE;
    }
    c->n_volumes++;
    if (c->json) {
        printf("%s\n  {\"partition\": %u, \"start\": %" G_GUINT64_FORMAT
               ", \"files\": [", c->n_volumes > 1 ? "," : "", any->number, any->start);
    } else {
        printf("Files of %s:\n", where);
    }
    if (is_old && is_new) {
        const TtDiskPart both[2] = { *old, *new };

        found = tool_ext_compare(c->disk, c->name, both, c->changed, &r);
    } else {
        found = tool_complain("%s: only '%s' has an ext2, ext3 or ext4 file system "
                              "there, '%s' has none", where, c->name[is_new],
                              c->name[!is_new]);
    }
    printf("%s", c->json ? "]}" : r.n ? "" :
           found == TOOL_FINE ? "  no difference\n" : "  not compared\n");
    return found;
}

static int compare_files(TtIo *disk[2], const char *const name[2], const GArray *changed,
                         bool json)
{
    Comparison c = { .disk = disk, .name = name, .changed = changed, .json = json };
    Volumes v[2] = { 0 };
    int result = find_volumes(disk[0], name[0], &v[0]) &&
                 find_volumes(disk[1], name[1], &v[1]) ? TOOL_FINE : TOOL_PROBLEM;

    printf("%s", json ? ", \"volumes\": [" : "");
    for (unsigned i = 0; v[1].n && i < v[1].n; i++) {
        int found = compare_volume(&c, find_part(&v[0], v[1].part[i].number),
                                   &v[1].part[i]);

        result = MAX(result, found);
    }
    for (unsigned i = 0; v[1].n && i < v[0].n; i++) {
        if (!find_part(&v[1], v[0].part[i].number)) {
            int found = compare_volume(&c, &v[0].part[i], NULL);

            result = MAX(result, found);
        }
    }
    printf("%s", json ? "]" : c.n_volumes || result != TOOL_FINE ? "" :
           "No ext2, ext3 or ext4 file system: only blocks are compared\n");
    g_free(v[0].part);
    g_free(v[1].part);
    return result;
}

/* ---- in a process of its own ---- */

static void be_child(TtIo *disk[2], const char *const name[2], const GArray *changed,
                     bool json, int out)
{
    struct rlimit space = { CHILD_BYTES, CHILD_BYTES };
    struct rlimit cpu = { CHILD_SECONDS, CHILD_SECONDS }, core = { 0, 0 };
    int result;

    setrlimit(RLIMIT_AS, &space);
    setrlimit(RLIMIT_CPU, &cpu);
    setrlimit(RLIMIT_CORE, &core);
    dup2(out, 1);
    result = compare_files(disk, name, changed, json);
    _exit(fflush(stdout) ? TOOL_PROBLEM : result);
}

static void copy_out(FILE *from)
{
    char buf[4096];
    size_t n;

    rewind(from);
    while ((n = fread(buf, 1, sizeof(buf), from))) {
        fwrite(buf, 1, n, stdout);
    }
}

int tool_disk_diff_files(TtIo *disk[2], const char *const name[2], const GArray *changed,
                         bool json)
{
    FILE *out = tmpfile();
    int status = 0, result;
    pid_t pid;

    fflush(stdout);
    pid = out ? fork() : -1;
    if (pid == 0) {
        be_child(disk, name, changed, json, fileno(out));
    }
    if (pid < 0) {
        result = tool_complain("cannot look at the files: %s", g_strerror(errno));
    } else {
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
        }
        result = WIFEXITED(status) ? WEXITSTATUS(status) :
            tool_complain("the file systems were not compared to the end (signal %d): they "
                          "are damaged, or too large for the limits of this command",
                          WTERMSIG(status));
        if (WIFEXITED(status)) {
            copy_out(out);
        }
    }
    if (out) {
        fclose(out);
    }
    return result;
}

#else

int tool_disk_diff_files(TtIo *disk[2], const char *const name[2], const GArray *changed,
                         bool json)
{
    tool_note("this tt was built without libext2fs (Debian's libext2fs-dev), so it "
              "compares only blocks, not files");
    return TOOL_FINE;
}

#endif
