/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * For the functional tests: the end of a link that no VM has (tt-tool-grouplink.h). It
 * listens, says when a peer is there and when it is not, and sends it a frame each second.
 *
 *     tt-link-end ADDRESS [KEY-FILE]
 */
#include "tool/tt-tool-grouplink.h"

#include <stdio.h>

#define LOOK_MS 50
#define SEND_MS 1000

/* In the place of tt-tool-util.c. */
int tool_complain(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fputc('\n', stderr);
    return TOOL_PROBLEM;
}

void tool_note(const char *text)
{
    fprintf(stderr, "note: %s\n", text);
}

int tool_problem(const TtDiag *diag)
{
    return tool_complain("%s", diag->text);
}

static void came(void *opaque, const TtFrame *f)
{
}

static gboolean look(gpointer opaque)
{
    static bool was_open;
    bool is_open = group_link_is_open(opaque);

    if (is_open != was_open) {
        was_open = is_open;
        puts(is_open ? "open" : "closed");
        fflush(stdout);
    }
    return G_SOURCE_CONTINUE;
}

static gboolean send_one(gpointer opaque)
{
    static const uint8_t bytes[60] = { 255, 255, 255, 255, 255, 255, 2 };
    static TtFrame f = { .run = "link-end", .pos = TT_FRAME_NO_POS, .data = bytes,
                         .len = sizeof(bytes) };

    f.hash = tt_frame_hash(bytes, sizeof(bytes));
    f.seq += group_link_send(opaque, &f);
    return G_SOURCE_CONTINUE;
}

int main(int argc, char **argv)
{
    GroupMeeting m = { .group = (char *)"g", .listens = true };
    GroupLink *l;

    if (argc < 2) {
        return 2;
    }
    m.address = argv[1];
    m.key_file = argv[2];
    l = group_link_new(&m, came, NULL);
    if (!l) {
        return 1;
    }
    puts("listening");
    fflush(stdout);
    g_timeout_add(LOOK_MS, look, l);
    g_timeout_add(SEND_MS, send_one, l);
    g_main_loop_run(g_main_loop_new(NULL, false));
    return 0;
}
