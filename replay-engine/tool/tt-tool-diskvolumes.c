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

/* Where file systems may be: the partitions, or (number 0) the whole disk. */
static unsigned find_volumes(TtIo *disk, TtDiskPart *part)
{
    uint64_t bytes = 0;
    unsigned n = 0;

    (void)disk->ops->size(disk, &bytes, NULL);
    if (!is_ext_at(disk, 0, bytes) &&
        tt_diskparts_read(disk, part, &n, NULL) == TT_OK && n) {
        return n;
    }
    part[0] = (TtDiskPart) { 0, 0, bytes };
    return 1;
}

static const TtDiskPart *find_part(const TtDiskPart *part, unsigned n, uint32_t number)
{
    for (unsigned i = 0; i < n; i++) {
        if (part[i].number == number) {
            return &part[i];
        }
    }
    return NULL;
}

static bool is_ext(TtIo *disk, const TtDiskPart *p)
{
    return p && is_ext_at(disk, p->start, p->len);
}

static int compare_files(TtIo *disk[2], const char *const name[2], const GArray *changed,
                         bool json)
{
    g_autofree TtDiskPart *part[2] = { g_new0(TtDiskPart, TT_DISKPARTS_MAX + 1), NULL };
    g_autofree TtDiskPart *other = g_new0(TtDiskPart, TT_DISKPARTS_MAX + 1);
    unsigned n[2], n_volumes = 0;
    int result = TOOL_FINE;

    n[0] = find_volumes(disk[0], part[0]);
    n[1] = find_volumes(disk[1], other);
    printf("%s", json ? ", \"volumes\": [" : "");
    for (unsigned i = 0; i < n[1]; i++) {
        const TtDiskPart *old = find_part(part[0], n[0], other[i].number);
        g_autofree char *where = other[i].number ?
            g_strdup_printf("partition %u", other[i].number) : g_strdup("the whole disk");
        ToolFileReport r = { .json = json };
        int found;

        if (!is_ext(disk[1], &other[i]) && !is_ext(disk[0], old)) {
            continue;
        }
        n_volumes++;
        if (json) {
            printf("%s\n  {\"partition\": %u, \"start\": %" G_GUINT64_FORMAT
                   ", \"files\": [", n_volumes > 1 ? "," : "", other[i].number,
                   other[i].start);
        } else {
            printf("Files of %s:\n", where);
        }
        if (is_ext(disk[1], &other[i]) && is_ext(disk[0], old)) {
            const TtDiskPart both[2] = { *old, other[i] };

            found = tool_ext_compare(disk, name, both, changed, &r);
        } else {
            found = tool_complain("%s: only '%s' has an ext2, ext3 or ext4 file system "
                                  "there, '%s' has none", where,
                                  name[is_ext(disk[1], &other[i])],
                                  name[!is_ext(disk[1], &other[i])]);
        }
        result = MAX(result, found);
        printf("%s", json ? "]}" : r.n ? "" :
               found == TOOL_FINE ? "  no difference\n" : "  not compared\n");
    }
    printf("%s", json ? "]" : n_volumes ? "" :
           "No ext2, ext3 or ext4 file system: only blocks are compared\n");
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
