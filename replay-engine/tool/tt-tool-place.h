/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Where QEMU executes parts of a run: tt-tool-local.c has processes of this host do it,
 * tt-tool-slurm.c tasks of a cluster. tt-tool-part.c says what is executed, takes apart
 * what is said, and puts it together; it is the same for both.
 */
#ifndef TT_TOOL_PLACE_H
#define TT_TOOL_PLACE_H

#include "tt-tool-verify.h"

typedef void ToolDone(void *opaque, ToolPart *p);

typedef struct ToolPlace {
    bool has_queue;             /* takes all parts at once, and keeps to the jobs itself */
    /* From now on p->is_running. False: an error, and it was said. */
    bool (*start)(ToolReplays *r, ToolPart *p);
    /* Waits a while for what running parts say, hands it to tool_part_take, and for each
     * that has ended calls tool_part_finish and @done. Sees to those that were dropped.
     * False: an error, and it was said. */
    bool (*serve)(ToolReplays *r, ToolDone *done, void *opaque);
} ToolPlace;

extern const ToolPlace tool_local, tool_slurm;

/* QEMU and its arguments, NULL after them; g_strfreev. NULL: said why. */
char **tool_part_command(const ToolReplays *r, const ToolPart *p);
/* Some of what QEMU prints. */
void tool_part_take(const ToolReplays *r, ToolPart *p, const char *buf, size_t n);
/* Nothing of it has come yet: it will be executed again. */
void tool_part_reset(ToolPart *p);
/* QEMU ended, by @signal, or, if that is 0, with @status. */
void tool_part_finish(const ToolReplays *r, ToolPart *p, int signal, int status);

#endif
