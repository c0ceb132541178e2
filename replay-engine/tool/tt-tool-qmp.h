/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A client of QMP for the tool: one command at a time, and its answer. Events are passed
 * over.
 */
#ifndef TT_TOOL_QMP_H
#define TT_TOOL_QMP_H

#include "tt-tool.h"

#include <netdb.h>

typedef struct ToolQmp ToolQmp;

/* Takes @fd over, a connected socket. */
ToolQmp *tool_qmp_new(int fd);
/* Of the VM at this Unix socket. NULL: it was said why there is none. */
ToolQmp *tool_qmp_open(const char *path);
void tool_qmp_free(ToolQmp *q);         /* NULL is fine */
/* A connected Unix socket; -1: errno. */
int tool_unix_connect(const char *path);
/* A connected socket that does not block, after @patience_ms at most; -1: errno. */
int tool_inet_connect(const struct addrinfo *at, int patience_ms);
/* Waits for the greeting, and answers it. False: @why, g_free. */
bool tool_qmp_greet(ToolQmp *q, unsigned seconds, char **why);
/* @arguments: a JSON object, or NULL. True: *@answer is the line of the answer, g_free;
 * it may be NULL. False: *@why, g_free: QEMU's own words, or what became of it. */
bool tool_qmp_do(ToolQmp *q, const char *command, const char *arguments,
                 unsigned seconds, char **answer, char **why);
/* The same without waiting for the answer, which comes as a line. False: it has closed the
 * connection. */
bool tool_qmp_send(ToolQmp *q, const char *command, const char *arguments);
/* The first string in @line with this name, g_free; NULL: there is none. */
char *tool_qmp_words(const char *line, const char *key);
int tool_qmp_fd(const ToolQmp *q);
/* Without waiting: the next line that has come, g_free. NULL: none has, or (*@is_over) the
 * connection is closed. */
char *tool_qmp_line(ToolQmp *q, bool *is_over);
/* @text as a JSON string, in quotes; g_free. */
char *tool_qmp_quote(const char *text);

#endif
