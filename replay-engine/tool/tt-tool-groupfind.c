/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tt group: which runs are a group, those in a directory or those in a list.
 */
#include "tt-tool-group.h"
#include "log/tt-logparts.h"

#include <errno.h>
#include <sys/stat.h>

#define LIST_BYTES_MAX (16 << 20)       /* of a list: more than the longest needs */

static void add_member(Group *g, const char *name, const char *run)
{
    GroupMember *m = g_new0(GroupMember, 1);

    m->name = g_strdup(name);
    m->run = g_strdup(run);
    m->sent = g_array_new(false, false, sizeof(GroupSent));
    m->got = g_array_new(false, false, sizeof(GroupGot));
    m->points = g_array_new(false, false, sizeof(GroupPoint));
    m->incidents = g_array_new(false, false, sizeof(GroupIncident));
    m->kept = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    m->windows = g_ptr_array_new_with_free_func(g_free);
    g_ptr_array_add(g->members, m);
}

static gint by_name(gconstpointer a, gconstpointer b)
{
    return strcmp((*(GroupMember **)a)->name, (*(GroupMember **)b)->name);
}

/* ---- windows of flight recorders ---- */

/* Of a run in the directory. */
typedef struct Id {
    bool is_known, is_there;
    uint8_t uuid[16];
} Id;

static const Id *id_of(const Group *g, Id *ids, unsigned i)
{
    g_autofree char *path = g_build_filename(group_at(g, i)->run, "manifest", NULL);
    TtManifest m;

    if (!ids[i].is_known) {
        ids[i].is_known = true;
        if (tt_manifest_load(path, &m, NULL) == TT_OK) {    /* else opening it says why */
            ids[i].is_there = true;
            memcpy(ids[i].uuid, m.uuid, 16);
            tt_manifest_cleanup(&m);
        }
    }
    return &ids[i];
}

/* Of one that was saved beside its run, as RUN-NAME: the number of that run; or -1. @by_run:
 * run -> its number + 1. */
static int window_of(const Group *g, Id *ids, GHashTable *by_run, unsigned i)
{
    g_autofree char *head = g_strdup(group_at(g, i)->run);
    int run = -1;
    char *dash;

    while ((dash = strrchr(head, '-')) && !strchr(dash, '/')) {
        unsigned k;

        *dash = 0;
        k = GPOINTER_TO_UINT(g_hash_table_lookup(by_run, head));
        if (k-- && id_of(g, ids, k)->is_there && id_of(g, ids, i)->is_there &&
            !memcmp(ids[k].uuid, ids[i].uuid, 16)) {
            run = k;            /* of a window of a window, the run */
        }
    }
    return run;
}

static void leave_out_windows(Group *g)
{
    unsigned n = g->members->len;
    g_autofree Id *ids = g_new0(Id, n);
    g_autofree int *of = g_new(int, n);
    GHashTable *by_run = g_hash_table_new(g_str_hash, g_str_equal);

    for (unsigned i = 0; i < n; i++) {
        g_hash_table_insert(by_run, group_at(g, i)->run, GUINT_TO_POINTER(i + 1));
    }
    for (unsigned i = 0; i < n; i++) {
        of[i] = window_of(g, ids, by_run, i);
        if (of[i] >= 0) {
            g_ptr_array_add(group_at(g, of[i])->windows, g_strdup(group_at(g, i)->run));
        }
    }
    g_hash_table_unref(by_run);
    for (unsigned i = n; i-- > 0; ) {
        if (of[i] >= 0) {
            g_ptr_array_remove_index_fast(g->members, i);
        }
    }
}

/* ---- which runs ---- */

static bool has_log(const char *run)
{
    g_autofree char *log = tt_logparts_path(run, 0);
    unsigned n = 0;
    g_autofree uint32_t *parts = tt_logparts_list(run, &n);

    return n || g_file_test(log, G_FILE_TEST_IS_REGULAR);
}

/* A window that is being saved, or that its VM was killed over: tt-save-dir.c. */
static bool is_unfinished(const char *run)
{
    g_autofree char *sign = g_build_filename(run, "unfinished", NULL);

    return g_str_has_suffix(run, ".saving") && g_file_test(sign, G_FILE_TEST_EXISTS);
}

/* Each directory in @path with a manifest is a run, and its name without ".run" that of
 * the member. */
static bool find_runs(Group *g, const char *path)
{
    g_autoptr(GPtrArray) left_out = g_ptr_array_new_with_free_func(g_free);
    GError *err = NULL;
    GDir *dir = g_dir_open(path, 0, &err);
    const char *entry;

    if (!dir) {
        tool_complain("%s", err->message);
        g_error_free(err);
        return false;
    }
    while ((entry = g_dir_read_name(dir))) {
        g_autofree char *run = g_build_filename(path, entry, NULL);
        g_autofree char *manifest = g_build_filename(run, "manifest", NULL);
        g_autofree char *name = g_strdup(entry);
        struct stat st;

        if (is_unfinished(run)) {
            continue;
        }
        if (stat(manifest, &st) && errno != ENOENT && errno != ENOTDIR) {
            group_find(left_out, "cannot access %s, which is not counted as a member: %s", run,
                       g_strerror(errno));
        } else if (g_file_test(manifest, G_FILE_TEST_IS_REGULAR)) {
            if (g_str_has_suffix(name, ".run") && strlen(name) > 4) {
                name[strlen(name) - 4] = 0;
            }
            add_member(g, tt_replace_controls(name, '?'), run);
        } else if (has_log(run)) {
            group_find(left_out, "%s has a log but no manifest: it is not counted as a "
                       "member, and its frames come from outside", run);
        }
    }
    g_dir_close(dir);
    for (unsigned i = 0; i < left_out->len; i++) {
        tool_complain("%s", (const char *)left_out->pdata[i]);
    }
    leave_out_windows(g);
    g->name = g_path_get_basename(path);
    return true;
}

bool group_is_name(const char *name)
{
    return *name && g_utf8_validate(name, -1, NULL) && !tt_has_control(name) &&
        !strchr(name, '/') && strcmp(name, ".") && strcmp(name, "..");
}

/* Some editors begin a text with a byte order mark, which GKeyFile does not know. */
static bool load_list(GKeyFile *f, const char *path, GError **err)
{
    static const char mark[] = "\xef\xbb\xbf";
    g_autofree char *text = NULL;
    gsize len, skip;

    if (!g_file_get_contents(path, &text, &len, err)) {
        return false;
    }
    skip = g_str_has_prefix(text, mark) ? strlen(mark) : 0;
    return g_key_file_load_from_data(f, text + skip, len - skip, G_KEY_FILE_NONE, err);
}

/* Each line of [names] is for one of [members]. False: said which is not. */
static bool check_names(GKeyFile *f, const char *path)
{
    g_auto(GStrv) names = g_key_file_get_keys(f, "names", NULL, NULL);

    for (char **n = names; n && *n; n++) {
        if (!g_key_file_has_key(f, "members", *n, NULL)) {
            tool_complain("%s has a name for '%s', which is not among its members: each line "
                          "below [names] begins as one below [members] does", path, *n);
            return false;
        }
    }
    return true;
}

/* A GKeyFile: [group] name=; [members] NAME=RUN, relative to the file; [names] NAME=its name,
 * of members whose name no line can begin with. */
static bool read_list(Group *g, const char *path)
{
    g_autoptr(GKeyFile) f = g_key_file_new();
    g_autofree char *dir = g_path_get_dirname(path);
    g_auto(GStrv) names = NULL;
    GError *err = NULL;
    struct stat st;

    /* One that is a pipe, say, would be waited for. */
    if (stat(path, &st) == 0 && (!S_ISREG(st.st_mode) || st.st_size > LIST_BYTES_MAX)) {
        tool_complain("%s is neither a directory with runs nor a list of runs: it is %s", path,
                      S_ISREG(st.st_mode) ? "too long" : "a special file");
        return false;
    }
    if (load_list(f, path, &err)) {
        names = g_key_file_get_keys(f, "members", NULL, &err);
    }
    if (!names) {
        tool_complain("%s is neither a directory with runs nor a list of runs (a line "
                      "[members], then lines NAME=RUN): %s", path, err->message);
        g_error_free(err);
        return false;
    }
    if (!check_names(f, path)) {
        return false;
    }
    for (unsigned i = 0; names[i]; i++) {
        g_autofree char *value = g_key_file_get_string(f, "members", names[i], NULL);
        g_autofree char *name = g_key_file_get_string(f, "names", names[i], NULL);
        g_autofree char *run = value ? g_path_is_absolute(value) ? g_strdup(value) :
                               g_build_filename(dir, value, NULL) : g_strdup("");

        if (!value || !*value) {
            tool_complain("%s names no run for member '%s': each line is NAME=RUN", path,
                          names[i]);
            return false;
        }
        add_member(g, tt_replace_controls(name && *name ? name : names[i], '?'), run);
    }
    g->name = g_key_file_get_string(f, "group", "name", NULL);
    if (!g->name) {
        g->name = g_path_get_basename(path);
    }
    return true;
}

static bool is_run(const char *path)
{
    g_autofree char *manifest = g_build_filename(path, "manifest", NULL);

    return g_file_test(manifest, G_FILE_TEST_IS_REGULAR);
}

bool group_find_members(Group *g, const char *path)
{
    bool is_dir = g_file_test(path, G_FILE_TEST_IS_DIR);

    if (!(is_dir ? find_runs(g, path) : read_list(g, path))) {
        return false;
    }
    tt_replace_controls(g->name, '?');
    if (is_dir && !g->members->len && is_run(path)) {
        tool_complain("%s is itself a run: give the directory in which the runs of the group "
                      "are", path);
        return false;
    }
    if (!g->members->len || g->members->len > TT_CAUSAL_RUNS_MAX) {
        tool_complain("%s has %u runs: a group has 1 to %d", path, g->members->len,
                      TT_CAUSAL_RUNS_MAX);
        return false;
    }
    g_ptr_array_sort(g->members, by_name);
    for (unsigned i = 1; i < g->members->len; i++) {
        if (!strcmp(group_at(g, i)->name, group_at(g, i - 1)->name)) {
            tool_complain("%s has two members '%s': rename a run, or name them in a group "
                          "file", path, group_at(g, i)->name);
            return false;
        }
    }
    return true;
}
