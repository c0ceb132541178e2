/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tt disk: the disks of a run, RUN/disks/NAME.tt, and which of their versions goes with
 * a position, a checkpoint or a mark. Each full checkpoint has pinned one of each disk.
 */
#include "tt-tool-disk.h"
#include "run/tt-cpstate.h"
#include "run/tt-marks.h"

#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

/* ---- which disk ---- */

static gint by_name(gconstpointer a, gconstpointer b)
{
    return strcmp(*(char **)a, *(char **)b);
}

/* Names without ".tt", sorted: of those that are there, and of those that the run has
 * made and that are gone. */
typedef struct Names {
    GPtrArray *there, *missing;
} Names;

static bool has_name(const GPtrArray *names, const char *name)
{
    for (guint i = 0; i < names->len; i++) {
        if (strcmp(names->pdata[i], name) == 0) {
            return true;
        }
    }
    return false;
}

static void find_missing(const char *folder, Names *n)
{
    TtBases bases;

    if (tt_bases_load(folder, &bases, NULL) == TT_OK) {
        for (unsigned i = 0; i < bases.n; i++) {
            if (!has_name(n->there, bases.base[i]->name)) {
                g_ptr_array_add(n->missing, g_strdup(bases.base[i]->name));
            }
        }
        tt_bases_cleanup(&bases);
    }
    g_ptr_array_sort(n->missing, by_name);
}

static void find_names(const char *folder, Names *n)
{
    g_autoptr(GError) err = NULL;
    GDir *dir = g_dir_open(folder, 0, &err);
    const char *name;

    if (!dir && !g_error_matches(err, G_FILE_ERROR, G_FILE_ERROR_NOENT)) {
        tool_complain("%s", err->message);
    }

    n->there = g_ptr_array_new_with_free_func(g_free);
    n->missing = g_ptr_array_new_with_free_func(g_free);
    while (dir && (name = g_dir_read_name(dir))) {
        if (g_str_has_suffix(name, ".tt")) {
            g_ptr_array_add(n->there, g_strndup(name, strlen(name) - 3));
        }
    }
    if (dir) {
        g_dir_close(dir);
    }
    g_ptr_array_sort(n->there, by_name);
    find_missing(folder, n);
}

static void free_names(Names *n)
{
    g_ptr_array_unref(n->there);
    g_ptr_array_unref(n->missing);
}

static void complain_missing(const char *folder, const char *name)
{
    tool_complain("the disk '%s' of the run is missing: its file '%s/%s.tt' was deleted or "
                  "moved: put it back", name, folder, name);
}

static bool is_any(const char *run, const Names *n)
{
    if (!n->there->len && !n->missing->len) {
        tool_complain("the run '%s' has no disk with versions: it was recorded with "
                      "disk=image, the guest had no disk that it could write, or the "
                      "directory 'disks' of the run was deleted", run);
        return false;
    }
    return true;
}

/* "a, b (missing), c" */
static char *list(const Names *n)
{
    g_autoptr(GPtrArray) all = g_ptr_array_new_with_free_func(g_free);

    for (guint i = 0; i < n->there->len; i++) {
        g_ptr_array_add(all, g_strdup(n->there->pdata[i]));
    }
    for (guint i = 0; i < n->missing->len; i++) {
        g_ptr_array_add(all, g_strdup_printf("%s (missing)",
                                             (char *)n->missing->pdata[i]));
    }
    g_ptr_array_sort(all, by_name);
    g_ptr_array_add(all, NULL);
    return g_strjoinv(", ", (char **)all->pdata);
}

/* NULL: said why. */
static char *choose(const char *run, const char *folder, const char *wanted, const Names *n)
{
    g_autofree char *all = list(n);
    const char *only = n->there->len + n->missing->len > 1 ? NULL :
        n->there->len ? n->there->pdata[0] : n->missing->len ? n->missing->pdata[0] : NULL;
    const char *name = wanted ? wanted : only;

    if (!is_any(run, n)) {
        return NULL;
    }
    if (name && has_name(n->there, name)) {
        return g_strdup(name);
    }
    if (name && has_name(n->missing, name)) {
        complain_missing(folder, name);
    } else if (wanted) {
        tool_complain("the run has no disk '%s'; it has %s", wanted, all);
    } else {
        tool_complain("the run has more than one disk: give --disk NAME, one of %s",
                      all);
    }
    return NULL;
}

static char *path_of(const char *folder, const char *name)
{
    g_autofree char *file = g_strconcat(name, ".tt", NULL);

    return g_build_filename(folder, file, NULL);
}

char *tool_disk_of_run(const char *run, const char *wanted)
{
    g_autofree char *folder = g_build_filename(run, "disks", NULL), *name = NULL;
    Names n;

    find_names(folder, &n);
    name = choose(run, folder, wanted, &n);
    free_names(&n);
    return name ? path_of(folder, name) : NULL;
}

GPtrArray *tool_disks_of_run(const char *run)
{
    g_autofree char *folder = g_build_filename(run, "disks", NULL);
    GPtrArray *paths = NULL;
    Names n;

    find_names(folder, &n);
    if (n.missing->len) {
        complain_missing(folder, n.missing->pdata[0]);
    } else if (is_any(run, &n)) {
        paths = g_ptr_array_new_with_free_func(g_free);
        for (guint i = 0; i < n.there->len; i++) {
            g_ptr_array_add(paths, path_of(folder, n.there->pdata[i]));
        }
    }
    free_names(&n);
    return paths;
}

/* ---- what the full checkpoints have pinned ---- */

static void pin_clear(void *p)
{
    g_free(((ToolDiskPin *)p)->name);
    g_free(((ToolDiskPin *)p)->changed);
}

/* Of the run's own disks the image is relative to the run. */
static bool is_image_of(const ToolDisk *d, const char *image)
{
    g_autofree char *base = g_path_get_basename(d->path);
    g_autofree char *own = g_build_filename("disks", base, NULL);

    return image && (strcmp(image, own) == 0 || strcmp(image, d->path) == 0);
}

bool tool_full_desc(TtPageStore *store, TtNodeId id, void **blob, TtFullDesc *desc)
{
    TtCpState s;
    size_t len;

    return tt_pagestore_blob(store, id, blob, &len, NULL) == TT_OK &&
           tt_cpstate_decode((TtBytes) { *blob, len }, &s, NULL) == TT_OK &&
           tt_fulldesc_find(s.full, desc, NULL) == TT_OK;
}

/* An image below the disk that is there, and is not what it was at the checkpoint. */
static char *changed_image(const ToolDisk *d, const TtFullDisk *k)
{
    g_autofree char *run = g_canonicalize_filename(d->run, NULL);

    for (unsigned i = 0; i < k->n_files; i++) {
        g_autofree char *path = g_canonicalize_filename(k->files[i].path, run);
        struct stat st;

        if (!stat(path, &st) &&
            ((uint64_t)st.st_size != k->files[i].size_bytes ||
             st.st_mtim.tv_sec * 1000000000ull + st.st_mtim.tv_nsec !=
             k->files[i].mtime_ns)) {
            return g_steal_pointer(&path);
        }
    }
    return NULL;
}

static void take_checkpoint(const ToolDisk *d, TtPageStore *store,
                            const TtCheckpointInfo *info, GArray *pins)
{
    g_autofree void *blob = NULL;
    TtFullDesc desc;

    if (!tool_full_desc(store, info->id, &blob, &desc)) {
        return;
    }
    for (unsigned i = 0; i < desc.n_disks; i++) {
        const TtFullDisk *k = &desc.disks[i];

        if (k->version && is_image_of(d, k->image)) {
            ToolDiskPin p = { info->id, info->pos, k->version, g_strdup(desc.name),
                              changed_image(d, k) };

            g_array_append_val(pins, p);
            break;
        }
    }
    tt_fulldesc_cleanup(&desc);
}

GArray *tool_disk_pins(const ToolDisk *d)
{
    g_autofree char *path = g_build_filename(d->run, "manifest", NULL);
    GArray *pins = g_array_new(false, true, sizeof(ToolDiskPin));
    TtPageStore *store = NULL;
    TtManifest m;
    TtDiag diag;
    TtStatus st;

    g_array_set_clear_func(pins, pin_clear);
    if (tt_manifest_load(path, &m, &diag) != TT_OK) {
        tool_problem(&diag);
        return pins;
    }
    st = tt_runstore_open(d->run, &m, 0, &store, &diag);
    if (st == TT_OK) {
        size_t n = tt_pagestore_count(store);
        g_autofree TtCheckpointInfo *infos = g_new0(TtCheckpointInfo, n + 1);

        n = tt_pagestore_list(store, infos, n);
        for (size_t i = 0; i < n; i++) {
            if (infos[i].flags & TT_CHECKPOINT_FULL) {
                take_checkpoint(d, store, &infos[i], pins);
            }
        }
    } else if (st != TT_END) {
        tool_problem(&diag);
    }
    tt_pagestore_free(store);
    tt_manifest_cleanup(&m);
    return pins;
}

/* ---- a place in the run ---- */

/* Names that can stand behind an @, of full checkpoints and of marks. */
typedef struct NameSearch {
    TtMarkSearch mark;
    GPtrArray *names;
} NameSearch;

static void take_name(void *opaque, const char *name, uint64_t pos)
{
    NameSearch *s = opaque;

    tt_mark_search(&s->mark, name, pos);
    if (*name && !has_name(s->names, name)) {
        g_ptr_array_add(s->names, g_strdup(name));
    }
}

#define LISTED  8

static void complain_no_name(const char *name, const GPtrArray *names)
{
    g_autoptr(GString) all = g_string_new(NULL);

    for (guint i = 0; i < MIN(names->len, LISTED); i++) {
        g_string_append_printf(all, "%s@%s", i ? ", " : "", (char *)names->pdata[i]);
    }
    if (names->len > LISTED) {
        g_string_append_printf(all, " and %u more", names->len - LISTED);
    }
    tool_complain("the run has neither a full checkpoint nor a mark named '%s': it has %s",
                  name, names->len ? all->str : "no names");
}

/* Returns whether there is such a mark; if not, that is said. */
static bool find_mark(const ToolDisk *d, const GArray *pins, const char *name,
                      uint64_t *pos)
{
    NameSearch s = { { name }, g_ptr_array_new_with_free_func(g_free) };
    TtDiag diag;
    bool ok;

    for (guint i = 0; i < pins->len; i++) {
        const ToolDiskPin *p = &g_array_index(pins, ToolDiskPin, i);

        if (*p->name && !has_name(s.names, p->name)) {
            g_ptr_array_add(s.names, g_strdup(p->name));
        }
    }
    ok = tt_marks_of_run(d->run, take_name, &s, &diag) == TT_OK;
    if (!ok) {
        tool_problem(&diag);
    } else if (!s.mark.is_found) {
        complain_no_name(name, s.names);
    }
    *pos = s.mark.pos;
    g_ptr_array_unref(s.names);
    return ok && s.mark.is_found;
}

/* A checkpoint's name or id, a mark, a position. *@pin: that checkpoint itself. */
static bool find_place(const ToolDisk *d, const GArray *pins, const char *text,
                       uint64_t *pos, const ToolDiskPin **pin)
{
    bool is_name = *text == '@';
    uint64_t n = 0;

    *pin = NULL;
    if (is_name && !text[1]) {
        tool_complain("the name of a full checkpoint or of a mark is missing after '@'");
        return false;
    }
    if (!is_name && !tool_parse_number(text, &n)) {
        tool_complain("'%s' is no place in a run: give a position, the id of a full "
                      "checkpoint, @ and the name of one or of a mark, or 'now'", text);
        return false;
    }
    for (guint i = 0; i < pins->len; i++) {
        const ToolDiskPin *p = &g_array_index(pins, ToolDiskPin, i);

        if (is_name ? strcmp(p->name, text + 1) == 0 : p->checkpoint == n) {
            *pin = p;
        }
    }
    *pos = n;
    return !is_name || *pin || find_mark(d, pins, text + 1, pos);
}

static const ToolDiskPin *nearest(const GArray *pins, uint64_t pos)
{
    const ToolDiskPin *best = NULL;

    for (guint i = 0; i < pins->len; i++) {
        const ToolDiskPin *p = &g_array_index(pins, ToolDiskPin, i);

        if (p->pos <= pos && (!best || p->pos >= best->pos)) {
            best = p;
        }
    }
    return best;
}

int tool_disk_at_place(const ToolDisk *d, const char *text, ToolDiskAt *at)
{
    g_autoptr(GArray) pins = tool_disk_pins(d);
    const ToolDiskPin *pin;
    g_autofree char *where = NULL, *near = NULL;
    TtVersionInfo v;
    uint64_t pos;

    if (!find_place(d, pins, text, &pos, &pin)) {
        return TOOL_PROBLEM;
    }
    if (!pin) {
        near = g_strdup_printf(", the nearest one before '%s'", text);
        pin = nearest(pins, pos);
    }
    if (!pin && pins->len) {
        return tool_complain("there is no version of the disk at or before '%s', position "
                             "%" PRIu64 ": the first one is at position %" PRIu64, text, pos,
                             g_array_index(pins, ToolDiskPin, 0).pos);
    }
    if (!pin) {
        return tool_complain("no full checkpoint of the run has a version of '%s': make "
                             "full checkpoints while recording, or use 'now', the disk "
                             "as the run left it",
                             d->path);
    }
    if (!tt_blockmap_version_info(d->map, pin->version, &v)) {
        return tool_complain("version %" PRIu32 " of '%s', which checkpoint %" PRIu32 " "
                             "needs, is missing", pin->version, d->path, pin->checkpoint);
    }
    if (!tool_disk_note_replaced(d) && pin->changed) {
        g_autofree char *note =
            g_strdup_printf("the image '%s' has changed since checkpoint %" PRIu32 ": where "
                            "the guest had written nothing, the version is like the image "
                            "now", pin->changed, pin->checkpoint);

        tool_note(note);
    }
    where = tool_number(pin->pos);
    at->id = pin->version;
    at->words = g_strdup_printf("version %" PRIu32 ", of checkpoint %" PRIu32 "%s%s at "
                                "position %s%s", pin->version, pin->checkpoint,
                                *pin->name ? " " : "", pin->name, where,
                                near && pin->pos != pos ? near : "");
    at->has_pos = true;
    at->pos = pin->pos;
    return TOOL_FINE;
}
