/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Full checkpoints: the state of all devices, by QEMU's own migration code, and
 * RAM that no guest has seen and our store thus does not have. With the RAM of
 * the store and the disks (tt-disks.c) a VM can go on from there for real.
 */
#include "qemu/osdep.h"
#include "hw-tt/state/tt-full.h"
#include "hw-tt/memory/tt-memory.h"
#include "hw-tt/state/tt-disks.h"
#include "io/tt-base.h"
#include "run/tt-cpstate.h"
#include "run/tt-fullstate.h"
#include "session/tt-paths.h"
#include "session/tt-session.h"
#include "qapi/error.h"
#include "qemu/rcu.h"
#include "qemu/error-report.h"
#include "exec/cpu-common.h"
#include "exec/ramlist.h"
#include "exec/ramblock.h"
#include "exec/ram_addr.h"
#include "exec/memory.h"
#include "hw/boards.h"
#include "hw/virtio/virtio-net.h"
#include "io/channel-buffer.h"
#include "migration/blocker.h"
#include "migration/global_state.h"
#include "migration/misc.h"
#include "migration/migration.h"
#include "migration/qemu-file.h"
#include "migration/savevm.h"
#include "system/runstate.h"

#define DEVICES_HEAD 8          /* migration's magic and version */

/* ---- saving ---- */

/* But for our own "-tt record is on". */
static bool is_migratable(Error **errp)
{
    Error *err = NULL;
    bool blocked;

    tt_unblock_migration();
    blocked = migration_is_blocked(&err);
    tt_block_migration(&error_abort);
    if (blocked) {
        error_setg(errp, "the state of this machine cannot be saved: %s",
                   error_get_pretty(err));
        error_free(err);
    }
    return !blocked;
}

bool tt_full_is_possible(Error **errp)
{
    return is_migratable(errp) && tt_disks_can_be_kept(errp);
}

static bool put(TtFullWriter *w, uint32_t kind, const char *name,
                const void *bytes, size_t len, Error **errp)
{
    TtDiag diag;

    if (tt_full_put(w, kind, name, bytes, len, &diag) != TT_OK) {
        error_setg(errp, "%s", diag.text);
        return false;
    }
    return true;
}

static bool put_devices(TtFullWriter *w, Error **errp)
{
    g_autoptr(QIOChannelBuffer) bioc = qio_channel_buffer_new(1 << 20);
    QEMUFile *f = qemu_file_new_output(QIO_CHANNEL(bioc));
    bool ok;

    global_state_store();
    ok = qemu_save_device_state(f) >= 0 && qemu_fflush(f) >= 0;
    if (!ok) {
        error_setg(errp, "a device cannot save its state");
    }
    ok = ok && put(w, TT_FULL_DEVICES, NULL, bioc->data, bioc->usage, errp);
    qemu_fclose(f);
    return ok;
}

static bool is_tracked(const RAMBlock *rb)
{
    for (unsigned i = 0; i < tt_memory_n_blocks(); i++) {
        if (tt_memory_block(i)->ram_block == rb) {
            return true;
        }
    }
    return false;
}

static bool put_blocks(TtFullWriter *w, Error **errp)
{
    RAMBlock *rb;

    RCU_READ_LOCK_GUARD();
    QLIST_FOREACH_RCU(rb, &ram_list.blocks, next) {
        if (qemu_ram_is_migratable(rb) && !is_tracked(rb) &&
            !put(w, TT_FULL_BLOCK, rb->idstr, rb->host, rb->used_length,
                 errp)) {
            return false;
        }
    }
    return true;
}

void tt_full_describe(TtFullDesc *d)
{
    d->machine = g_strdup(MACHINE_GET_CLASS(current_machine)->name);
    d->cpu = g_strdup(current_machine->cpu_type);
    d->ram_bytes = current_machine->ram_size;
}

TtFullWriter *tt_full_save(const char *name, TtFullMayMake *may_make,
                           GString *said, Error **errp)
{
    TtFullWriter *w = NULL;
    TtFullDesc d = { .name = g_strdup(name ?: "") };
    g_autofree char *text = NULL;
    bool ok;

    tt_full_describe(&d);
    ok = tt_full_is_possible(errp);
    if (ok) {
        w = tt_full_writer_new();
        ok = put_devices(w, errp) && put_blocks(w, errp) &&
            tt_disks_freeze(&d, may_make, name, said, errp);
    }
    if (ok) {
        text = tt_fulldesc_text(&d);
        ok = put(w, TT_FULL_TEXT, NULL, text, strlen(text), errp);
        if (!ok) {
            tt_disks_unpin(&d);
        }
    }
    tt_fulldesc_cleanup(&d);
    if (!ok) {
        tt_full_writer_free(w);
        w = NULL;
    }
    return w;
}

/* ---- loading ---- */

static bool load_block(const TtFullPart *part, Error **errp)
{
    RAMBlock *rb = qemu_ram_block_by_name(part->name);
    TtDiag diag;

    if (!rb) {
        error_setg(errp, "the machine does not have the recorded RAM block '%s': use the "
                   "same options", tt_printable(part->name));
        return false;
    }
    if (rb->used_length != part->raw_bytes &&
        (part->raw_bytes > rb->max_length ||
         qemu_ram_resize(rb, part->raw_bytes, errp) < 0)) {
        if (!*errp) {
            error_setg(errp, "the size of RAM block '%s' differs from the "
                       "recorded one: use the same options",
                       tt_printable(part->name));
        }
        return false;
    }
    if (tt_full_unpack(part, rb->host, &diag) != TT_OK) {
        error_setg(errp, "%s", diag.text);
        return false;
    }
    memory_region_set_dirty(rb->mr, 0, part->raw_bytes);
    return true;
}

static bool load_devices(const TtFullPart *part, Error **errp)
{
    g_autoptr(QIOChannelBuffer) bioc = NULL;
    g_autofree uint8_t *bytes = g_try_malloc(part->raw_bytes + 1);
    QEMUFile *f;
    TtDiag diag;
    int ret;

    if (!bytes || part->raw_bytes < DEVICES_HEAD ||
        tt_full_unpack(part, bytes, &diag) != TT_OK) {
        error_setg(errp, "the device state of the checkpoint is damaged");
        return false;
    }
    bioc = qio_channel_buffer_new(part->raw_bytes);
    bioc->usage = part->raw_bytes - DEVICES_HEAD;
    memcpy(bioc->data, bytes + DEVICES_HEAD, bioc->usage);
    f = qemu_file_new_input(QIO_CHANNEL(bioc));
    ret = qemu_load_device_state(f);
    qemu_fclose(f);
    if (ret < 0) {
        error_setg(errp, "the devices do not accept the recorded state: use the "
                   "same options and the QEMU that recorded it");
        return false;
    }
    return true;
}

/* After a migration the guest's network driver tells the switches where it is now. Nobody
 * has moved here, and the guest is to go on as it was. */
static int leave_unannounced(Object *o, void *opaque)
{
    if (object_dynamic_cast(o, TYPE_VIRTIO_NET)) {
        AnnounceTimer *t = &VIRTIO_NET(o)->announce_timer;

        if (t->tm) {
            timer_del(t->tm);
        }
        t->round = 0;
    }
    return 0;
}

/* RAM first: devices look into it when their state is loaded. */
bool tt_full_load(TtBytes full, Error **errp)
{
    TtFullPart part, devices = { 0 };
    unsigned n = 0;
    TtDiag diag;
    TtStatus s;

    while ((s = tt_full_next(&full, &n, &part, &diag)) == TT_OK) {
        if (part.kind == TT_FULL_BLOCK && !load_block(&part, errp)) {
            return false;
        }
        if (part.kind == TT_FULL_DEVICES) {
            devices = part;
        }
    }
    if (s < 0 || !devices.kind) {
        error_setg(errp, "%s", s < 0 ? diag.text :
                   "the full checkpoint has no device state: it is damaged");
        return false;
    }
    if (!load_devices(&devices, errp)) {
        return false;
    }
    object_child_foreach_recursive(object_get_root(), leave_unannounced, NULL);
    return true;
}
