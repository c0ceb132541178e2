/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Places that are followed: registers, by their names, and memory.
 */
#include "debug/tt-flow-place.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char *const general_names[][TT_FLOW_GENERAL] = {
    { "al", "cl", "dl", "bl", "spl", "bpl", "sil", "dil",
      "r8b", "r9b", "r10b", "r11b", "r12b", "r13b", "r14b", "r15b" },
    { "ax", "cx", "dx", "bx", "sp", "bp", "si", "di",
      "r8w", "r9w", "r10w", "r11w", "r12w", "r13w", "r14w", "r15w" },
    { "eax", "ecx", "edx", "ebx", "esp", "ebp", "esi", "edi",
      "r8d", "r9d", "r10d", "r11d", "r12d", "r13d", "r14d", "r15d" },
    { "rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi",
      "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15" },
};

bool tt_flow_place_meets(const TtFlowPlace *a, const TtFlowPlace *b)
{
    if (a->kind != b->kind || a->kind == TT_FLOW_AT_CONST || !a->len || !b->len) {
        return false;
    }
    if (a->kind == TT_FLOW_AT_MEM) {
        return a->addr - b->addr < b->len || b->addr - a->addr < a->len;
    }
    return a->reg == b->reg && a->first < b->first + b->len &&
        b->first < a->first + a->len;
}

char *tt_flow_place_text(const TtFlowPlace *p, char *buf, size_t size)
{
    static const uint8_t order[] = { [1] = 1, [2] = 2, [4] = 3, [8] = 4 };
    unsigned known = p->len < sizeof(order) ? order[p->len] : 0;

    if (p->kind != TT_FLOW_AT_REG) {
        snprintf(buf, size, "0x%" PRIx64, p->addr);
    } else if (p->reg >= TT_FLOW_GENERAL && !p->first && p->len >= 16) {
        snprintf(buf, size, "%cmm%u", p->len > 16 ? 'y' : 'x', p->reg - TT_FLOW_GENERAL);
    } else if (p->reg >= TT_FLOW_GENERAL) {
        snprintf(buf, size, "ymm%u[%u..%u)", p->reg - TT_FLOW_GENERAL, p->first,
                 p->first + p->len);
    } else if (!p->first && known) {
        snprintf(buf, size, "%s", general_names[known - 1][p->reg]);
    } else if (p->first == 1 && p->len == 1 && p->reg < 4) {
        snprintf(buf, size, "%ch", "acdb"[p->reg]);
    } else {
        snprintf(buf, size, "%s[%u..%u)", general_names[3][p->reg], p->first,
                 p->first + p->len);
    }
    return buf;
}

bool tt_flow_place_named(const char *name, TtFlowPlace *place)
{
    static const uint8_t lengths[] = { 8, 4, 2, 1, 16, 32 };
    char text[32];

    for (unsigned reg = 0; reg < TT_FLOW_REGS; reg++) {
        for (unsigned i = 0; i < sizeof(lengths); i++) {
            *place = (TtFlowPlace) { .reg = reg, .len = lengths[i] };
            if ((reg >= TT_FLOW_GENERAL) == (lengths[i] >= 16) &&
                !strcmp(name, tt_flow_place_text(place, text, sizeof(text)))) {
                return true;
            }
        }
        *place = (TtFlowPlace) { .reg = reg, .first = 1, .len = 1 };
        if (reg < 4 && !strcmp(name, tt_flow_place_text(place, text, sizeof(text)))) {
            return true;
        }
    }
    return false;
}

bool tt_flow_place_parse(const char *name, TtFlowPlace *place)
{
    return tt_flow_place_named(!strcmp(name, "sp") ? "rsp" : !strcmp(name, "fp") ? "rbp" :
                               name, place);
}
