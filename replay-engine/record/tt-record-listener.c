/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The listeners of a recording. Their list does not change after start. */
#include "qemu/osdep.h"
#include "record/tt-record-listener.h"
#include "tt-record-tell-int.h"
#include "qapi/error.h"
#include "hw/core/cpu.h"

#define LISTENERS_MAX 12

static const TtRecordListener *listeners[LISTENERS_MAX];
static unsigned n_listeners;

void tt_record_listen(const TtRecordListener *l)
{
    assert(n_listeners < LISTENERS_MAX);
    listeners[n_listeners++] = l;
}

/* Calls function @what of all listeners that have it. */
#define TELL(what, ...)                                 \
    do {                                                \
        for (unsigned i = 0; i < n_listeners; i++) {    \
            if (listeners[i]->what) {                   \
                listeners[i]->what(__VA_ARGS__);        \
            }                                           \
        }                                               \
    } while (0)

bool tt_record_tell_started(CPUState *cpu, Error **errp)
{
    for (unsigned i = 0; i < n_listeners; i++) {
        if (listeners[i]->started && !listeners[i]->started(cpu, errp)) {
            return false;
        }
    }
    return true;
}

void tt_record_tell_sync_point(CPUState *cpu)
{
    TELL(sync_point, cpu);
}

void tt_record_tell_turned(CPUState *cpu)
{
    TELL(turned, cpu);
}

void tt_record_tell_console(uint32_t port, uint8_t byte)
{
    TELL(console, port, byte);
}

void tt_record_tell_grew(bool is_tight)
{
    TELL(grew, is_tight);
}

void tt_record_tell_trouble(void)
{
    TELL(tell);
}

void tt_record_tell_finishing(void)
{
    TELL(finishing);
}

void tt_record_tell_ended(void)
{
    TELL(ended);
}

void tt_record_tell_removing(void)
{
    TELL(removing);
}

bool tt_record_ask_room(void)
{
    for (unsigned i = 0; i < n_listeners; i++) {
        if (listeners[i]->make_room && listeners[i]->make_room()) {
            return true;
        }
    }
    return false;
}

bool tt_record_ask_checkpoints(void)
{
    for (unsigned i = 0; i < n_listeners; i++) {
        if (listeners[i]->has_checkpoints && listeners[i]->has_checkpoints()) {
            return true;
        }
    }
    return false;
}
