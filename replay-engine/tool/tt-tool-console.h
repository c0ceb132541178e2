/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The lines that the guest wrote to its first serial port, from the events of a log: for
 * tt console and tt page.
 */
#ifndef TT_TOOL_CONSOLE_H
#define TT_TOOL_CONSOLE_H

#include "tt-tool.h"

/* @pos: of the line's first byte, or of its end if it has none. @text: valid UTF-8,
 * without what moves a terminal's cursor or sets a colour. */
typedef void ToolConsoleLine(void *opaque, uint64_t pos, const char *text);

typedef struct ToolConsole {
    ToolConsoleLine *line;
    void *opaque;
    size_t most;                /* bytes of a line; what is beyond is left out */
    /* its own */
    uint8_t line_control;
    uint64_t pos;
    GString *text;
    bool has_begun;
    bool is_escape, is_sequence;    /* after ESC; after ESC [ */
} ToolConsole;

/* All events of the log, in order: a write to the line control register changes what
 * the port's next bytes are. */
void tool_console_add(ToolConsole *c, const TtEvent *ev);
/* A last line that has no end is given, too. */
void tool_console_end(ToolConsole *c);

#endif
