/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Start of a branch: has the machine the RAM blocks of the checkpoint? */
#include "qemu/osdep.h"
#include "tt-branch-int.h"
#include "hw-tt/state/tt-parent.h"
#include "io/tt-base.h"
#include "run/tt-cpstate.h"
#include "run/tt-fullstate.h"
#include "session/tt-paths.h"
#include "qapi/error.h"
#include "exec/cpu-common.h"
#include "exec/ram_addr.h"
#include "exec/ramblock.h"
#include "exec/ramlist.h"
#include "qemu/rcu.h"

/* Names and sizes of the RAM blocks of the checkpoint. */
static GHashTable *recorded_blocks(const TtParent *parent)
{
    GHashTable *all = g_hash_table_new_full(g_str_hash, g_str_equal, g_free,
                                            g_free);
    TtBytes rest = parent->state.blocks, full = parent->state.full;
    unsigned n = 0;
    TtFullPart part;
    TtCpBlock b;

    while (tt_cpstate_next_block(&rest, &b)) {
        g_hash_table_insert(all, g_strndup((const char *)b.name.data,
                                           b.name.len),
                            g_memdup2(&b.size_bytes, sizeof(uint64_t)));
    }
    while (tt_full_next(&full, &n, &part, NULL) == TT_OK) {
        if (part.kind == TT_FULL_BLOCK) {
            g_hash_table_insert(all, g_strdup(part.name),
                                g_memdup2(&part.raw_bytes, sizeof(uint64_t)));
        }
    }
    return all;
}

static bool wrong_block(const char *name, const char *how, const char *dir, Error **errp)
{
    error_setg(errp, "RAM block '%s' %s: give the options of the recorded "
               "machine, see 'tt info %s'", tt_printable(name), how,
               tt_printable(dir));
    return false;
}

static bool check_block(RAMBlock *rb, GHashTable *recorded, const char *dir, Error **errp)
{
    const uint64_t *size = g_hash_table_lookup(recorded, rb->idstr);

    if (!size) {
        return !qemu_ram_is_migratable(rb) ||
            wrong_block(rb->idstr, "does not exist in the recorded machine", dir,
                        errp);
    }
    if (*size != rb->used_length &&
        (*size > rb->max_length || qemu_ram_resize(rb, *size, NULL) < 0)) {
        return wrong_block(rb->idstr, "has another size", dir, errp);
    }
    g_hash_table_remove(recorded, rb->idstr);
    return true;
}

bool tt_branch_check_blocks(const TtParent *parent, const char *dir, Error **errp)
{
    g_autoptr(GHashTable) recorded = recorded_blocks(parent);
    GHashTableIter it;
    const char *name;
    RAMBlock *rb;

    RCU_READ_LOCK_GUARD();
    QLIST_FOREACH_RCU(rb, &ram_list.blocks, next) {
        if (!check_block(rb, recorded, dir, errp)) {
            return false;
        }
    }
    g_hash_table_iter_init(&it, recorded);
    if (g_hash_table_iter_next(&it, (void **)&name, NULL)) {
        return wrong_block(name, "is missing", dir, errp);
    }
    return true;
}
