/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The images below the disks of a run: what they look like, and whether they still do.
 * tt-basesfile.c reads and writes them.
 */
#include "run/tt-bases.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <glib.h>
#include <xxhash.h>

#define END_BYTES   (64u << 10)     /* at both ends */
#define PAGE_BYTES  4096u
#define PAGES       16u             /* between */

/* ---- entries ---- */

static void free_files(TtBase *k)
{
    for (unsigned i = 0; i < k->n_files; i++) {
        g_free(k->files[i].path);
    }
    g_clear_pointer(&k->files, g_free);
    k->n_files = 0;
}

static void free_base(TtBase *k)
{
    free_files(k);
    g_free(k->name);
    g_free(k->image);
    g_free(k);
}

void tt_bases_cleanup(TtBases *b)
{
    for (unsigned i = 0; i < b->n; i++) {
        free_base(b->base[i]);
    }
    g_free(b->base);
    *b = (TtBases) { 0 };
}

TtBase *tt_bases_find(const TtBases *b, const char *name)
{
    for (unsigned i = 0; i < b->n; i++) {
        if (strcmp(b->base[i]->name, name) == 0) {
            return b->base[i];
        }
    }
    return NULL;
}

void tt_bases_remove(TtBases *b, const char *name)
{
    for (unsigned i = 0; i < b->n; i++) {
        if (strcmp(b->base[i]->name, name) == 0) {
            free_base(b->base[i]);
            memmove(&b->base[i], &b->base[i + 1], (b->n - i - 1) * sizeof(b->base[0]));
            b->n--;
            return;
        }
    }
}

TtBase *tt_bases_add(TtBases *b, const char *name, const char *image, uint32_t version)
{
    TtBase *k = g_new0(TtBase, 1);

    tt_bases_remove(b, name);
    b->base = g_renew(TtBase *, b->base, b->n + 1);
    b->base[b->n++] = k;
    k->name = g_strdup(name);
    k->image = g_strdup(image ? image : "");
    k->version = version;
    return k;
}

/* ---- what a file looks like ---- */

static bool add_bytes(int fd, uint64_t at, size_t len, XXH3_state_t *sum)
{
    uint8_t buf[PAGE_BYTES];

    while (len) {
        ssize_t n = pread(fd, buf, MIN(len, sizeof(buf)), at);

        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return n == 0;              /* it has become shorter */
        }
        XXH3_64bits_update(sum, buf, n);
        at += n;
        len -= n;
    }
    return true;
}

static bool add_up(int fd, uint64_t size, uint64_t *sum)
{
    XXH3_state_t *state = XXH3_createState();
    uint64_t middle = size > 2 * END_BYTES ? size - 2 * END_BYTES : 0;
    bool ok;

    XXH3_64bits_reset(state);
    ok = add_bytes(fd, 0, MIN(size, 2 * END_BYTES) - (middle ? END_BYTES : 0), state);
    for (unsigned i = 0; ok && middle && i < PAGES; i++) {
        uint64_t at = END_BYTES + middle / PAGES * i;

        ok = add_bytes(fd, at, MIN(PAGE_BYTES, size - at), state);
    }
    ok = ok && (!middle || add_bytes(fd, size - END_BYTES, END_BYTES, state));
    *sum = XXH3_64bits_digest(state);
    XXH3_freeState(state);
    return ok;
}

static uint64_t mtime_of(const struct stat *st)
{
    return st->st_mtim.tv_sec * 1000000000ull + st->st_mtim.tv_nsec;
}

bool tt_basefile_look(const char *path, TtBaseFile *f)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat st;
    bool ok = fd >= 0 && fstat(fd, &st) == 0;
    int err;

    if (ok && !S_ISREG(st.st_mode)) {
        errno = EINVAL;
        ok = false;
    }
    if (ok) {
        f->size_bytes = st.st_size;
        f->mtime_ns = mtime_of(&st);
        ok = add_up(fd, st.st_size, &f->sum);
    }
    err = errno;
    if (fd >= 0) {
        close(fd);
    }
    errno = err;
    return ok;
}

/* ---- which file ---- */

static char *run_of(const char *disks)
{
    g_autofree char *whole = g_canonicalize_filename(disks, NULL);

    return g_path_get_dirname(whole);
}

/* The file @path of an entry, now that the image is @image. */
static char *place_of(const TtBase *k, const char *path, const char *disks,
                      const char *image)
{
    g_autofree char *run = run_of(disks), *whole = g_canonicalize_filename(path, run);
    g_autofree char *folder = g_canonicalize_filename(disks, NULL);
    g_autofree char *was = g_canonicalize_filename(k->image, folder);

    return image && strcmp(image, k->image) && strcmp(whole, was) == 0 ?
        g_canonicalize_filename(image, folder) : g_steal_pointer(&whole);
}

bool tt_base_add_file(TtBase *k, const char *path, const char *disks)
{
    g_autofree char *place = place_of(k, path, disks, NULL);
    TtBaseFile f = { 0 };

    if (k->n_files == TT_BASE_FILES_MAX || !tt_basefile_look(place, &f)) {
        return false;
    }
    f.path = g_strdup(path);
    k->files = g_renew(TtBaseFile, k->files, k->n_files + 1);
    k->files[k->n_files++] = f;
    return true;
}

char *tt_base_changed(const TtBase *k, const char *disks, const char *image)
{
    for (unsigned i = 0; i < k->n_files; i++) {
        const TtBaseFile *f = &k->files[i];
        g_autofree char *place = place_of(k, f->path, disks, image);
        TtBaseFile now = { 0 };

        if (!tt_basefile_look(place, &now) || now.size_bytes != f->size_bytes ||
            now.mtime_ns != f->mtime_ns || now.sum != f->sum) {
            return g_steal_pointer(&place);
        }
    }
    return NULL;
}

static bool is_replaced(const TtBase *k, const char *disks, const char *image)
{
    g_autofree char *folder = g_canonicalize_filename(disks, NULL);
    g_autofree char *was = g_canonicalize_filename(k->image, folder);
    g_autofree char *now = image ? g_canonicalize_filename(image, folder) : NULL;
    g_autofree char *run = run_of(disks);

    if (!*k->image || !now || strcmp(was, now) == 0) {
        return *k->image && !now;
    }
    for (unsigned i = 0; i < k->n_files; i++) {
        const TtBaseFile *f = &k->files[i];
        g_autofree char *whole = g_canonicalize_filename(f->path, run);
        TtBaseFile look = { 0 };

        if (strcmp(whole, was) == 0) {          /* a copy may have another time */
            return !tt_basefile_look(now, &look) || look.size_bytes != f->size_bytes ||
                look.sum != f->sum;
        }
    }
    return false;
}

bool tt_disk_is_replaced(const char *path, const char *image)
{
    g_autofree char *disks = g_path_get_dirname(path), *name = g_path_get_basename(path);
    bool answer = false;
    const TtBase *k;
    TtBases bases;

    if (!g_str_has_suffix(name, ".tt") || tt_bases_load(disks, &bases, NULL) != TT_OK) {
        return false;
    }
    name[strlen(name) - 3] = '\0';
    k = tt_bases_find(&bases, name);
    answer = k && is_replaced(k, disks, image);
    tt_bases_cleanup(&bases);
    return answer;
}

void tt_base_look_again(TtBase *k, const char *disks, const char *image, const char *disk)
{
    struct stat st;

    for (unsigned i = 0; i < k->n_files; i++) {
        g_autofree char *place = place_of(k, k->files[i].path, disks, image);

        /* One that cannot be read is like nothing: it has changed, later. */
        if (!tt_basefile_look(place, &k->files[i])) {
            k->files[i].mtime_ns = k->files[i].sum = 0;
        }
    }
    if (disk && stat(disk, &st) == 0) {
        k->disk.size_bytes = st.st_size;
        k->disk.mtime_ns = mtime_of(&st);
    }
}

bool tt_base_has_disk(const TtBase *k, const char *disk)
{
    struct stat st;

    return stat(disk, &st) == 0 && (uint64_t)st.st_size == k->disk.size_bytes &&
           mtime_of(&st) == k->disk.mtime_ns;
}
