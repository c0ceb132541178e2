/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Stall: the log cannot be written, because the disk is full or fails. With
 * on-error=stop (the default) nothing of the recording is given up: the VM is
 * stopped, the recorder says why, and the writer waits; `cont` tries again.
 *
 *   writer thread                     main loop, vCPU
 *   append fails --tt_stall_wait-->   VM stops (io-error)
 *        waits                        what is recorded until it stands goes into
 *        |                            fresh segments, in memory
 *        +<------ cont ---------------+
 *   append is tried again
 *
 * A recording that ends meanwhile (quit, tt record stop) gives up: what was sealed
 * stays. So does one that needs too many segments before it stands.
 */
#include "qemu/osdep.h"
#include "record/tt-write-stall.h"
#include "io/tt-base.h"
#include "log/tt-log.h"
#include "record/tt-record-options.h"
#include "tt/hooks.h"
#include "qemu/error-report.h"
#include "qemu/thread.h"
#include "system/runstate.h"

static struct {
    bool armed;                 /* the recording runs, and is to wait */
    bool on, told, gives_up;
    unsigned n_extra;
    TtDiag why;
    QemuSemaphore go_on;
    VMChangeStateEntry *entry;
} st;

static void vm_changed(void *opaque, bool running, RunState state)
{
    if (running && !tt_past && qatomic_read(&st.on)) {
        st.told = false;
        qatomic_set(&st.on, false);
        qemu_sem_post(&st.go_on);
    }
}

void tt_stall_arm(void)
{
    st = (typeof(st)) { .armed = tt_record_options.stop_on_error };
    qemu_sem_init(&st.go_on, 0);
    st.entry = qemu_add_vm_change_state_handler(vm_changed, NULL);
}

void tt_stall_give_up(void)
{
    if (st.entry) {
        qatomic_set(&st.gives_up, true);
        qatomic_set(&st.on, false);
        qemu_sem_post(&st.go_on);
    }
}

void tt_stall_disarm(void)
{
    if (st.entry) {
        qemu_del_vm_change_state_handler(st.entry);
        qemu_sem_destroy(&st.go_on);
        st = (typeof(st)) { 0 };
    }
}

bool tt_stall_wait(const TtDiag *why)
{
    if (!qatomic_read(&st.armed) || qatomic_read(&st.gives_up)) {
        return false;
    }
    st.why = *why;
    qatomic_set_mb(&st.on, true);
    qemu_system_vmstop_request_prepare();
    qemu_system_vmstop_request(RUN_STATE_IO_ERROR);
    qemu_sem_wait(&st.go_on);
    qatomic_set(&st.on, false);     /* it gave up just before that was set */
    return !qatomic_read(&st.gives_up);
}

const char *tt_stall_why(void)
{
    return qatomic_read(&st.on) ? st.why.text : NULL;
}

void tt_stall_tell(void)
{
    if (tt_stall_why() && !st.told) {
        st.told = true;
        warn_report("tt: the VM is stopped because its recording cannot be written: %s; "
                    "make room and use 'cont', or end the recording with 'tt record "
                    "stop' (in QMP tt-record-stop)", st.why.text);
    }
}

TtSegBuf *tt_stall_segment(void)
{
    if (!tt_stall_why()) {
        return NULL;
    }
    if (st.n_extra >= TT_STALL_SEGMENTS) {
        tt_stall_give_up();
        return NULL;
    }
    st.n_extra++;
    return tt_segbuf_new();
}
