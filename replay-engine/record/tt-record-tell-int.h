/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The recorder tells its listeners; what each call means is in
 * record/tt-record-listener.h.
 *
 * Context: as it is there.
 */
#ifndef TT_RECORD_TELL_INT_H
#define TT_RECORD_TELL_INT_H

struct CPUState;

bool tt_record_tell_started(struct CPUState *cpu, Error **errp);
void tt_record_tell_sync_point(struct CPUState *cpu);
void tt_record_tell_turned(struct CPUState *cpu);
void tt_record_tell_console(uint32_t port, uint8_t byte);
void tt_record_tell_grew(bool is_tight);
void tt_record_tell_trouble(void);
void tt_record_tell_finishing(void);
void tt_record_tell_ended(void);
void tt_record_tell_removing(void);
bool tt_record_ask_room(void);
bool tt_record_ask_checkpoints(void);

#endif
