/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Lines of source code for addresses: elfutils' libdw reads the DWARF.
 */
#include "tt-tool-origin.h"

#ifdef TT_HAVE_LIBDW
#include <elfutils/libdw.h>
#include <fcntl.h>
#include <unistd.h>

struct ToolLines {
    int fd;
    Dwarf *dwarf;
};

ToolLines *tool_lines_open(const char *path)
{
    int fd = open(path, O_RDONLY);
    Dwarf *dwarf = fd >= 0 ? dwarf_begin(fd, DWARF_C_READ) : NULL;
    ToolLines *l;

    if (!dwarf) {
        if (fd >= 0) {
            close(fd);
        }
        return NULL;
    }
    l = g_new(ToolLines, 1);
    *l = (ToolLines) { fd, dwarf };
    return l;
}

void tool_lines_free(ToolLines *l)
{
    if (l) {
        dwarf_end(l->dwarf);
        close(l->fd);
        g_free(l);
    }
}

char *tool_lines_find(const ToolLines *l, uint64_t addr)
{
    Dwarf_Off off = 0, next;
    size_t head;
    int number;

    while (l && !dwarf_nextcu(l->dwarf, off, &next, &head, NULL, NULL, NULL)) {
        Dwarf_Die die, *cu = dwarf_offdie(l->dwarf, off + head, &die);
        Dwarf_Line *line = cu && dwarf_haspc(cu, addr) == 1 ?
            dwarf_getsrc_die(cu, addr) : NULL;
        const char *file = line ? dwarf_linesrc(line, NULL, NULL) : NULL;

        if (file && !dwarf_lineno(line, &number)) {
            char *text = g_strdup_printf("%s:%d", file, number);

            tt_replace_controls(text, '?');
            return text;
        }
        off = next;
    }
    return NULL;
}

#else

ToolLines *tool_lines_open(const char *path)
{
    return NULL;
}

void tool_lines_free(ToolLines *l)
{
}

char *tool_lines_find(const ToolLines *l, uint64_t addr)
{
    return NULL;
}

#endif
