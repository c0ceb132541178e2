/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The manifest of a recording: who makes it, where, with which command.
 */
#include "qemu/osdep.h"
#include "control/tt-describe.h"
#include "accel-tt/tt-vcpu-backend.h"
#include "accel-tt/tt-vcpus.h"
#include "io/tt-base.h"
#include "session/tt-paths.h"
#include "session/tt-session.h"
#include "qemu-version.h"

/* So that a shell takes it apart into the same arguments; what needs no quotes gets
 * none, for people. */
static void append_quoted(GString *line, const char *arg)
{
    g_autofree char *quoted = g_shell_quote(arg);
    size_t plain = strspn(arg, G_CSET_A_2_Z G_CSET_a_2_z G_CSET_DIGITS
                          "-_.,:=/+@%^");

    g_string_append_printf(line, "%s%s", line->len ? " " : "",
                           *arg && !arg[plain] ? arg : quoted);
}

static void note_command_line(void)
{
    GString *line = g_string_new(NULL);
    g_autofree char *raw = NULL, *cwd = tt_start_directory() ?
        g_strdup(tt_start_directory()) : g_get_current_dir();
    gsize len = 0, i;

    g_file_get_contents("/proc/self/cmdline", &raw, &len, NULL);
    for (i = 0; i < len; i += strlen(raw + i) + 1) {
        append_quoted(line, raw + i);
    }
    if (g_utf8_validate(line->str, line->len, NULL) &&
        g_utf8_validate(cwd, -1, NULL)) {
        tt_session.manifest.directory = g_steal_pointer(&cwd);
    }
    tt_session.manifest.command_line = g_string_free(line, false);
}

void tt_describe_recording(void)
{
    g_autoptr(GDateTime) now = g_date_time_new_now_utc();

    tt_session.manifest.qemu_version = g_strdup(QEMU_VERSION);
    tt_session.manifest.tt_version = g_strdup(TT_TTVM_VERSION);
    tt_session.manifest.accel = g_strdup(tt_backend->name);
    tt_session.manifest.host = g_strdup(g_get_host_name());
    tt_session.manifest.started = g_date_time_format_iso8601(now);
    note_command_line();
}
