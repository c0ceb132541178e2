/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A page in three copies: that of the guest, one that another process may change at any
 * time (the shadow), and the content of both when they were last compared (the base).
 * Only bytes that one side changed go to the other, so the writes of both sides to
 * different bytes stay.
 *
 * Context: any thread; nothing here has state.
 */
#ifndef TT_SHADOW_H
#define TT_SHADOW_H

#include "io/tt-base.h"

#define TT_SHADOW_PAGE 4096

/* @n bytes at @at of the page are now as in @bytes. */
typedef void TtShadowPut(void *opaque, size_t at, const uint8_t *bytes, size_t n);

/*
 * The other side's changes: @put is called for each run of changed bytes, ascending,
 * and @base has them then. @shadow is read once. Returns how many bytes they are.
 */
size_t tt_shadow_in(const uint8_t *shadow, uint8_t *base, size_t n, TtShadowPut *put,
                    void *opaque);
/* The guest's changes go to @shadow and @base; returns how many bytes they are. */
size_t tt_shadow_out(const uint8_t *guest, uint8_t *shadow, uint8_t *base, size_t n);

#endif
