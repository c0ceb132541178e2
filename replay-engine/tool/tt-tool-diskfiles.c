/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tt disk diff: which files differ between two file systems. Walks through both, and looks
 * into the files whose inode or whose blocks have changed.
 */
#include "tt-tool-disk.h"

#ifdef TT_HAVE_EXT2FS

#include "tt-tool-extio.h"

#include <stdio.h>
#include <string.h>

#define DIRECTORIES_MAX 10000000
#define PATH_BYTES_MAX  65536

/* ---- one file system ---- */

typedef struct Entry {
    char *path;
    ext2_ino_t ino;
} Entry;

typedef struct Tree {
    ToolExtVolume volume;
    ext2_filsys fs;
    GArray *entries;            /* of Entry, by path */
    GHashTable *seen;           /* inodes of directories */
    GQueue todo;                /* of Entry: directories to be read */
    unsigned n_unread;          /* directories and files that could not be read */
    const char *path;           /* of the directory that is read */
} Tree;

/* What a file is; @hash is over its contents or its target. */
typedef struct FileFacts {
    uint16_t mode;
    uint32_t uid, gid;
    uint64_t bytes;
    char *hash;                 /* NULL: it has no contents, or cannot be read */
    bool is_read;
} FileFacts;

static int take_entry(ext2_ino_t dir, int entry, struct ext2_dir_entry *d, int offset,
                      int blocksize, char *buf, void *opaque)
{
    unsigned len = ext2fs_dirent_name_len(d);
    Tree *t = opaque;
    g_autofree char *name = g_strndup(d->name, len);
    Entry e = { .ino = d->inode };

    if (!d->inode || d->inode > t->fs->super->s_inodes_count || !*name ||
        strcmp(name, ".") == 0 || strcmp(name, "..") == 0 ||
        strlen(t->path) + len >= PATH_BYTES_MAX) {
        return 0;
    }
    e.path = g_strconcat(t->path, "/", name, NULL);
    g_array_append_val(t->entries, e);
    if (ext2fs_check_directory(t->fs, e.ino) == 0 &&
        g_hash_table_size(t->seen) < DIRECTORIES_MAX &&
        g_hash_table_add(t->seen, GUINT_TO_POINTER(e.ino))) {
        g_queue_push_tail(&t->todo, g_memdup2(&e, sizeof(e)));
    }
    return 0;
}

static gint by_path(gconstpointer a, gconstpointer b)
{
    return strcmp(((const Entry *)a)->path, ((const Entry *)b)->path);
}

/* All names, each directory once, whatever circles there are. */
static void walk(Tree *t)
{
    Entry root = { (char *)"", EXT2_ROOT_INO };

    t->entries = g_array_new(false, false, sizeof(Entry));
    t->seen = g_hash_table_new(NULL, NULL);
    g_hash_table_add(t->seen, GUINT_TO_POINTER(EXT2_ROOT_INO));
    g_queue_init(&t->todo);
    g_queue_push_tail(&t->todo, g_memdup2(&root, sizeof(root)));
    while (!g_queue_is_empty(&t->todo)) {
        g_autofree Entry *e = g_queue_pop_head(&t->todo);

        t->path = e->path;
        if (ext2fs_dir_iterate2(t->fs, e->ino, 0, NULL, take_entry, t)) {
            t->n_unread++;
        }
    }
    g_array_sort(t->entries, by_path);
}

/* ---- one file ---- */

static char *hash_contents(Tree *t, ext2_ino_t ino, struct ext2_inode *inode)
{
    g_autoptr(GChecksum) sum = g_checksum_new(G_CHECKSUM_SHA256);
    g_autofree uint8_t *buf = g_malloc(1 << 16);
    ext2_file_t file;
    unsigned got = 0;
    bool ok;

    if (ext2fs_is_fast_symlink(inode)) {
        g_checksum_update(sum, (uint8_t *)inode->i_block,
                          MIN(EXT2_I_SIZE(inode), sizeof(inode->i_block)));
        return g_strdup(g_checksum_get_string(sum));
    }
    if (ext2fs_file_open2(t->fs, ino, inode, 0, &file)) {
        return NULL;
    }
    while ((ok = ext2fs_file_read(file, buf, 1 << 16, &got) == 0) && got) {
        g_checksum_update(sum, buf, got);
    }
    ext2fs_file_close(file);
    return ok ? g_strdup(g_checksum_get_string(sum)) : NULL;
}

static void take_facts(Tree *t, ext2_ino_t ino, FileFacts *f)
{
    struct ext2_inode inode;

    *f = (FileFacts) { .is_read = ext2fs_read_inode(t->fs, ino, &inode) == 0 };
    if (!f->is_read) {
        t->n_unread++;
        return;
    }
    f->mode = inode.i_mode;
    f->uid = inode.i_uid | (uint32_t)inode.osd2.linux2.l_i_uid_high << 16;
    f->gid = inode.i_gid | (uint32_t)inode.osd2.linux2.l_i_gid_high << 16;
    if (LINUX_S_ISREG(inode.i_mode) || LINUX_S_ISLNK(inode.i_mode)) {
        f->bytes = EXT2_I_SIZE(&inode);
        f->hash = hash_contents(t, ino, &inode);
        f->is_read = f->hash != NULL;
        t->n_unread += !f->is_read;
    }
}

typedef struct Lookup {
    const GArray *changed;
    uint64_t start, block_bytes;
    bool hit;
} Lookup;

static int look_at_block(ext2_filsys fs, blk64_t *block, e2_blkcnt_t n, blk64_t parent,
                         int offset, void *opaque)
{
    Lookup *l = opaque;
    uint64_t at = l->start + *block * l->block_bytes;
    unsigned low = 0, high = l->changed->len;

    while (low < high) {
        unsigned middle = (low + high) / 2;
        const ToolRange *r = &g_array_index(l->changed, ToolRange, middle);

        if (r->start + r->len <= at) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    l->hit = low < l->changed->len &&
        g_array_index(l->changed, ToolRange, low).start < at + l->block_bytes;
    return l->hit ? BLOCK_ABORT : 0;
}

/* The same inode, with all its blocks where nothing changed? A journal that was recovered
 * says more than the blocks on the disk do. */
static bool is_untouched(Tree *t[2], const Entry *e[2], const GArray *changed)
{
    struct ext2_inode a, b;
    Lookup l = { changed, t[1]->volume.start, t[1]->fs->blocksize, false };

    if (e[0]->ino != e[1]->ino || t[0]->volume.start != t[1]->volume.start ||
        t[0]->fs->blocksize != t[1]->fs->blocksize ||
        ext2fs_read_inode(t[0]->fs, e[0]->ino, &a) ||
        ext2fs_read_inode(t[1]->fs, e[1]->ino, &b) || memcmp(&a, &b, sizeof(a)) != 0) {
        return false;
    }
    if (!ext2fs_inode_has_valid_blocks2(t[1]->fs, &b)) {
        return true;
    }
    if (t[0]->volume.journal || t[1]->volume.journal) {
        bool is_data_journaled = b.i_flags & EXT3_JOURNAL_DATA_FL;

        if (is_data_journaled || LINUX_S_ISLNK(b.i_mode)) {
            return false;
        }
    }
    return ext2fs_block_iterate3(t[1]->fs, e[1]->ino, BLOCK_FLAG_READ_ONLY, NULL,
                                 look_at_block, &l) == 0 && !l.hit;
}

/* ---- what differs ---- */

static const char *kind_of(uint16_t mode)
{
    return LINUX_S_ISREG(mode) ? "file" : LINUX_S_ISDIR(mode) ? "directory" :
           LINUX_S_ISLNK(mode) ? "link" : LINUX_S_ISCHR(mode) ||
           LINUX_S_ISBLK(mode) ? "device" : LINUX_S_ISFIFO(mode) ? "fifo" :
           LINUX_S_ISSOCK(mode) ? "socket" : "other";
}

static void side_json(const char *name, const FileFacts *f)
{
    printf(", \"%s\": ", name);
    if (!f) {
        printf("null");
        return;
    }
    printf("{\"type\": \"%s\", \"mode\": \"%04o\", \"uid\": %u, \"gid\": %u, \"bytes\": %"
           G_GUINT64_FORMAT ", \"sha256\": ", kind_of(f->mode), f->mode & 07777, f->uid,
           f->gid, f->bytes);
    if (f->hash) {
        printf("\"%s\"}", f->hash);
    } else {
        printf("null}");
    }
}

static void side_text(const FileFacts *f)
{
    if (!f) {
        printf("-");
    } else if (LINUX_S_ISREG(f->mode) || LINUX_S_ISLNK(f->mode)) {
        g_autofree char *n = tool_count(f->bytes, "byte");

        printf("%s%s (%.16s)", LINUX_S_ISLNK(f->mode) ? "link, " : "", n,
               f->hash ? f->hash : "unreadable");
    } else {
        printf("%s", kind_of(f->mode));
    }
}

static void report(ToolFileReport *r, const char *path, const FileFacts *a, const FileFacts *b)
{
    bool same = a && b && kind_of(a->mode) == kind_of(b->mode) && a->bytes == b->bytes &&
        g_strcmp0(a->hash, b->hash) == 0 && a->is_read && b->is_read;
    const char *what = !a ? "added" : !b ? "deleted" : same ? "attributes" : "changed";

    if (same && a->mode == b->mode && a->uid == b->uid && a->gid == b->gid) {
        return;
    }
    if (r->json) {
        printf("%s\n    {\"path\": ", r->n ? "," : "");
        tool_json_string(path);
        printf(", \"change\": \"%s\"", what);
        side_json("old", a);
        side_json("new", b);
        printf("}");
    } else {
        g_autofree char *name = tt_replace_controls(g_strdup(path), '?');

        printf("  %-10s  %s  ", what, name);
        if (same) {
            printf("mode %04o, owner %u:%u -> mode %04o, owner %u:%u", a->mode & 07777,
                   a->uid, a->gid, b->mode & 07777, b->uid, b->gid);
        } else {
            side_text(a);
            printf(" -> ");
            side_text(b);
        }
        printf("\n");
    }
    r->n++;
}

static void compare_entry(Tree *t[2], const Entry *e[2], const GArray *changed,
                          ToolFileReport *r)
{
    FileFacts f[2];

    if (e[0] && e[1] && is_untouched(t, e, changed)) {
        return;
    }
    for (unsigned i = 0; i < 2; i++) {
        if (e[i]) {
            take_facts(t[i], e[i]->ino, &f[i]);
        }
    }
    report(r, e[0] ? e[0]->path : e[1]->path, e[0] ? &f[0] : NULL, e[1] ? &f[1] : NULL);
    for (unsigned i = 0; i < 2; i++) {
        if (e[i]) {
            g_free(f[i].hash);
        }
    }
}

static void compare_trees(Tree *t[2], const GArray *changed, ToolFileReport *r)
{
    guint i[2] = { 0, 0 };

    while (i[0] < t[0]->entries->len || i[1] < t[1]->entries->len) {
        const Entry *e[2];
        int order;

        for (unsigned k = 0; k < 2; k++) {
            e[k] = i[k] < t[k]->entries->len ?
                &g_array_index(t[k]->entries, Entry, i[k]) : NULL;
        }
        order = !e[0] ? 1 : !e[1] ? -1 : strcmp(e[0]->path, e[1]->path);
        if (order) {
            e[order < 0] = NULL;
        }
        compare_entry(t, e, changed, r);
        i[0] += e[0] != NULL;
        i[1] += e[1] != NULL;
    }
}

int tool_ext_compare(TtIo *disk[2], const char *const name[2], const TtDiskPart *part,
                     const GArray *changed, ToolFileReport *r)
{
    Tree tree[2] = { 0 }, *t[2] = { &tree[0], &tree[1] };
    int result = TOOL_FINE;

    for (unsigned i = 0; i < 2 && result == TOOL_FINE; i++) {
        g_autofree char *what = part[i].number ?
            g_strdup_printf("'%s', partition %u", name[i], part[i].number) :
            g_strdup_printf("'%s'", name[i]);

        tree[i].volume = (ToolExtVolume) { disk[i], part[i].start, part[i].len };
        tree[i].fs = tool_ext_open(&tree[i].volume, what);
        if (tree[i].fs) {
            walk(&tree[i]);
        } else {
            result = TOOL_PROBLEM;
        }
    }
    if (result == TOOL_FINE) {
        compare_trees(t, changed, r);
        if (tree[0].n_unread || tree[1].n_unread) {
            result = tool_complain("%u directories or files cannot be read because the "
                                   "file system is damaged: their contents are not "
                                   "compared",
                                   tree[0].n_unread + tree[1].n_unread);
        }
    }
    for (unsigned i = 0; i < 2; i++) {
        tool_ext_close(&tree[i].volume, tree[i].fs);
    }
    return result;              /* the process ends: the rest is not worth freeing */
}

#endif
