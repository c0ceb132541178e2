/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Disks of a branch: each disk that the guest can write is a fresh disk with versions,
 * DIR/disks/NAME.tt, on top of the version, or the image, of the checkpoint. It takes the
 * place of what the -drive or -blockdev option says before that is opened, so that nothing
 * of the parent is opened for writing.
 */
#include "qemu/osdep.h"
#include "hw-tt/state/tt-disk-image.h"
#include "hw-tt/state/tt-disks.h"
#include "io/tt-io.h"
#include "record/tt-rundir.h"
#include "run/tt-fullstate.h"
#include "session/tt-paths.h"
#include "session/tt-session.h"
#include "tt-branch-int.h"
#include "tt/hooks.h"
#include "qapi/error.h"
#include "block/block.h"
#include "qemu/error-report.h"
#include "qemu/option.h"
#include "qemu/config-file.h"
#include "qapi/qapi-visit-block-core.h"
#include "qapi/qobject-input-visitor.h"
#include "qapi/qobject-output-visitor.h"
#include "qobject/qdict.h"
#include "qobject/qlist.h"
#include "qobject/qstring.h"

typedef struct Node {
    BlockdevOptions **options;
    GHashTable *refers;             /* strings in it that may be node names */
    bool is_disk, is_replaced, is_unused;
} Node;

static struct {
    GArray *nodes;                  /* of Node */
    GPtrArray *stores;            /* paths; one for each disk, NULL: none */
} bd;

static void G_NORETURN refuse(Error *err)
{
    error_reportf_err(err, "-tt branch: ");
    exit(1);
}

/* ---- nothing is left of a branch that never began ---- */

void tt_branch_discard_disks(void)
{
    g_autofree char *dir = g_build_filename(tt_session.dir, "disks", NULL);

    for (unsigned i = 0; bd.stores && i < bd.stores->len; i++) {
        if (bd.stores->pdata[i]) {
            tt_disk_remove_store(bd.stores->pdata[i]);
        }
    }
    rmdir(dir);
}

/* ---- is the image still what it was? ---- */

static bool check_file(const TtFullFile *f, const char *dir, Error **errp)
{
    g_autofree char *path = tt_disk_path_from(f->path, dir);
    struct stat st;

    if (stat(path, &st)) {
        error_setg_errno(errp, errno, "cannot find the disk image '%s': move it back "
                         "to that place", tt_printable(path));
        return false;
    }
    if (st.st_size == f->size_bytes && f->mtime_ns ==
        st.st_mtim.tv_sec * 1000000000ull + st.st_mtim.tv_nsec) {
        return true;
    }
    if (tt_branch_is_forced()) {
        warn_report("tt: the disk image '%s' has changed since the checkpoint",
                    tt_printable(path));
        return true;
    }
    error_setg(errp, "the disk image '%s' has changed since the checkpoint, so "
               "the guest would find a damaged disk: restore the image, or use "
               "force=on to take it as it is", tt_printable(path));
    return false;
}

static bool check_files(const TtFullDisk *d, const char *dir, Error **errp)
{
    for (unsigned i = 0; i < d->n_files; i++) {
        if (!check_file(&d->files[i], dir, errp)) {
            return false;
        }
    }
    return true;
}

/* ---- making the stores ---- */

/* As it is in the parent; there, too, it may be the second of that name. */
static char *store_path(const TtFullDisk *d)
{
    g_autofree char *theirs = g_path_get_basename(d->image);
    g_autofree char *name = d->version && g_str_has_suffix(theirs, ".tt") ?
        g_strndup(theirs, strlen(theirs) - 3) : d->drive >= 0 ?
        g_strdup_printf("drive%" PRId64, d->drive) : g_strdup(d->node);

    return tt_disk_fresh_store(tt_session.dir, name);
}

static bool is_same_node(const TtFullDisk *a, const TtFullDisk *b)
{
    return a->drive == b->drive && !strcmp(a->node, b->node);
}

static char *make_store(const TtFullDesc *desc, unsigned i, const char *dir,
                          Error **errp)
{
    const TtFullDisk *d = &desc->disks[i];
    g_autofree char *path = NULL, *image = NULL;

    for (unsigned k = 0; k < i; k++) {          /* two devices, one image */
        if (is_same_node(&desc->disks[k], d) && bd.stores->pdata[k]) {
            return g_strdup(bd.stores->pdata[k]);
        }
    }
    image = tt_disk_path_from(d->image, dir);
    if (d->version && !tt_disk_has_version(image, d->version, errp)) {
        return NULL;
    }
    path = store_path(d);
    return tt_disk_make_store(path, image, d->format, d->version, d->size_bytes, errp) ?
        g_steal_pointer(&path) : NULL;
}

static void make_stores(const TtFullDesc *desc, const char *dir)
{
    g_autofree char *disks = g_build_filename(tt_session.dir, "disks", NULL);
    Error *err = NULL;

    if (!tt_rundir_check(&err)) {
        refuse(err);
    }
    if (mkdir(disks, 0700) == 0) {
        tt_io_posix_sync_directory_of(disks);
    } else if (errno != EEXIST) {
        error_setg_errno(&err, errno, "cannot create '%s'", disks);
        refuse(err);
    }
    for (unsigned i = 0; i < desc->n_disks; i++) {
        const TtFullDisk *d = &desc->disks[i];
        char *path = NULL;

        if (!check_files(d, dir, &err) ||
            (d->is_writable && !(path = make_store(desc, i, dir, &err)))) {
            refuse(err);
        }
        g_ptr_array_add(bd.stores, path);
    }
}

/* ---- -drive ---- */

/* These say where the disk is in the machine, and how it is accessed; the rest
 * is about the image, which is another one now. */
static bool is_kept(const char *name)
{
    static const char *const kept[] = {
        "id", "bus", "unit", "index", "media", "if", "werror", "rerror", "aio",
        "discard", "detect-zeroes", "node-name", "cache", "copy-on-read",
        "stats-account-invalid", "stats-account-failed",
    };
    static const char *const groups[] = {
        "cache.", "throttling.", "throttling-", "bps", "iops",
    };

    for (size_t i = 0; i < ARRAY_SIZE(kept); i++) {
        if (!strcmp(name, kept[i])) {
            return true;
        }
    }
    for (size_t i = 0; i < ARRAY_SIZE(groups); i++) {
        if (g_str_has_prefix(name, groups[i])) {
            return true;
        }
    }
    return false;
}

static int collect_unkept(void *opaque, const char *name, const char *value,
                          Error **errp)
{
    if (!is_kept(name)) {
        g_ptr_array_add(opaque, g_strdup(name));
    }
    return 0;
}

static void replace_drive(QemuOpts *opts, const char *path)
{
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);

    qemu_opt_foreach(opts, collect_unkept, names, NULL);
    for (unsigned i = 0; i < names->len; i++) {
        qemu_opt_unset(opts, names->pdata[i]);
    }
    qemu_opt_set(opts, "file", path, &error_abort);
    qemu_opt_set(opts, "format", "tt", &error_abort);
}

typedef struct Drives {
    const TtFullDesc *desc;
    int64_t n;
} Drives;

static int visit_drive(void *opaque, QemuOpts *opts, Error **errp)
{
    Drives *v = opaque;

    for (unsigned i = 0; i < v->desc->n_disks; i++) {
        if (v->desc->disks[i].drive == v->n && bd.stores->pdata[i]) {
            replace_drive(opts, bd.stores->pdata[i]);
            break;
        }
    }
    v->n++;
    return 0;
}

/* ---- -blockdev ---- */

static void collect_strings(GHashTable *set, const char *key, QObject *o)
{
    QDict *dict = qobject_to(QDict, o);
    QList *list = qobject_to(QList, o);
    QString *s = qobject_to(QString, o);
    const QListEntry *e;

    if (dict) {
        const QDictEntry *d;

        for (d = qdict_first(dict); d; d = qdict_next(dict, d)) {
            collect_strings(set, qdict_entry_key(d), qdict_entry_value(d));
        }
    } else if (list) {
        QLIST_FOREACH_ENTRY(list, e) {
            collect_strings(set, key, qlist_entry_obj(e));
        }
    } else if (s && strcmp(key, "filename") && strcmp(key, "node-name")) {
        g_hash_table_add(set, g_strdup(qstring_get_str(s)));
    }
}

void tt_branch_blockdev(BlockdevOptions **options)
{
    Node n = {
        .options = options,
        .refers = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL),
    };
    QObject *o = NULL;
    Visitor *v = qobject_output_visitor_new(&o);

    visit_type_BlockdevOptions(v, NULL, options, &error_abort);
    visit_complete(v, &o);
    visit_free(v);
    collect_strings(n.refers, "", o);
    qobject_unref(o);
    if (!bd.nodes) {
        bd.nodes = g_array_new(false, false, sizeof(Node));
    }
    g_array_append_val(bd.nodes, n);
}

static const char *node_name(const Node *n)
{
    return (*n->options)->node_name;
}

/* Puts another node in the place of @n, under its name. */
static void replace_node(Node *n, QDict *with)
{
    BlockdevOptions *old = *n->options, *new = NULL;
    Visitor *v = qobject_input_visitor_new(QOBJECT(with));

    visit_type_BlockdevOptions(v, NULL, &new, &error_abort);
    visit_free(v);
    qobject_unref(with);
    new->has_discard = old->has_discard;
    new->discard = old->discard;
    new->has_detect_zeroes = old->has_detect_zeroes;
    new->detect_zeroes = old->detect_zeroes;
    new->cache = g_steal_pointer(&old->cache);
    qapi_free_BlockdevOptions(old);
    *n->options = new;
}

static QDict *named(const char *driver, const Node *n)
{
    QDict *d = qdict_new();

    qdict_put_str(d, "driver", driver);
    qdict_put_str(d, "node-name", node_name(n));
    return d;
}

static void put_store(Node *n, const char *path)
{
    QDict *top = named("tt", n), *file = qdict_new();

    qdict_put_str(file, "driver", "file");
    qdict_put_str(file, "filename", path);
    qdict_put(top, "file", file);
    replace_node(n, top);
    n->is_replaced = true;
}

static Node *find_node(const char *name)
{
    for (unsigned i = 0; bd.nodes && i < bd.nodes->len; i++) {
        Node *n = &g_array_index(bd.nodes, Node, i);

        if (node_name(n) && !strcmp(node_name(n), name)) {
            return n;
        }
    }
    return NULL;
}

/* Does any node refer to @n? @of_gone: one that is no longer of use. */
static bool is_referred(const Node *n, bool of_gone)
{
    for (unsigned i = 0; i < bd.nodes->len; i++) {
        Node *k = &g_array_index(bd.nodes, Node, i);

        if ((k->is_replaced || k->is_unused) == of_gone && node_name(n) &&
            g_hash_table_contains(k->refers, node_name(n))) {
            return true;
        }
    }
    return false;
}

/* What stood below a replaced node, and nowhere else, is not opened at all.
 * Those above come later on the command line, so one pass backwards does. */
static void drop_unused(void)
{
    for (unsigned i = bd.nodes ? bd.nodes->len : 0; i-- > 0;) {
        Node *n = &g_array_index(bd.nodes, Node, i);

        if (!n->is_disk && !n->is_replaced && is_referred(n, true) &&
            !is_referred(n, false)) {
            replace_node(n, named("null-co", n));
            n->is_unused = true;
        }
    }
}

static void replace_nodes(const TtFullDesc *desc)
{
    for (unsigned i = 0; i < desc->n_disks; i++) {
        const TtFullDisk *d = &desc->disks[i];
        Node *n = d->drive < 0 ? find_node(d->node) : NULL;

        if (!n) {
            continue;
        }
        n->is_disk = true;
        if (bd.stores->pdata[i] && !n->is_replaced) {
            put_store(n, bd.stores->pdata[i]);
        }
    }
    drop_unused();
}

void tt_branch_disks(int *snapshot)
{
    const char *dir;
    const TtFullDesc *desc = tt_branch_disks_wanted(&dir);
    Drives v = { .desc = desc };

    if (!desc) {
        return;
    }
    *snapshot = 0;              /* the stores are there to be written */
    bd.stores = g_ptr_array_new_with_free_func(g_free);
    make_stores(desc, dir);
    qemu_opts_foreach(qemu_find_opts("drive"), visit_drive, &v, NULL);
    replace_nodes(desc);
}

/* ---- afterwards ---- */

bool tt_branch_check_versions(Error **errp)
{
    const char *dir;
    const TtFullDesc *desc = tt_branch_disks_wanted(&dir);

    for (unsigned i = 0; i < desc->n_disks; i++) {
        const TtFullDisk *d = &desc->disks[i];
        g_autofree char *image = tt_disk_path_from(d->image, dir);

        if (d->version && !tt_disk_has_version(image, d->version, errp)) {
            return false;
        }
    }
    return true;
}

bool tt_branch_check_disks(Error **errp)
{
    const char *dir;
    const TtFullDesc *desc = tt_branch_disks_wanted(&dir);

    for (unsigned i = 0; i < desc->n_disks; i++) {
        const TtFullDisk *d = &desc->disks[i];
        g_autofree char *have = tt_disk_image_of(d->device);
        g_autofree char *want = bd.stores->pdata[i] ?
            g_strdup(bd.stores->pdata[i]) : tt_disk_path_from(d->image, dir);

        if (!have || strcmp(have, want)) {
            error_setg(errp, "the recorded machine had the disk '%s' at '%s', "
                       "but this one has %s there: use the same options",
                       tt_printable(want), tt_printable(d->device),
                       !have ? "no such device" :
                       *have ? tt_printable(have) : "no medium");
            return false;
        }
    }
    return true;
}

/* A disk that is only read, or a medium that can be taken out, is as it was? */
static bool has_image(const TtFullDisk *d, const char *dir, Error **errp)
{
    g_autofree char *have = tt_disk_image_of(d->device);
    g_autofree char *want = tt_disk_path_from(d->image, dir);

    if (!have || (d->is_writable ? !*have : strcmp(have, want))) {
        error_setg(errp, "the machine had '%s' in '%s' then, and has %s now: change it "
                   "back", *want ? tt_printable(want) : "nothing",
                   tt_printable(d->device), !have ? "no such device" :
                   *have ? tt_printable(have) : "no medium");
        return false;
    }
    return true;
}

bool tt_branch_disks_fit(const TtFullDesc *d, const char *dir, Error **errp)
{
    for (unsigned i = 0; i < d->n_disks; i++) {
        const TtFullDisk *disk = &d->disks[i];
        g_autofree char *image = tt_disk_path_from(disk->image, dir);

        if (!has_image(disk, dir, errp) || !check_files(disk, dir, errp) ||
            (disk->version && !tt_disk_has_version(image, disk->version, errp))) {
            return false;
        }
    }
    return true;
}
