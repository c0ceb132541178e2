/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The driver of the replay, which moves it.
 */
#include "qemu/osdep.h"
#include "replay/tt-replay-driver.h"

const TtReplayDriver *tt_replay_driver;

void tt_replay_drive(const TtReplayDriver *driver)
{
    tt_replay_driver = driver;
}
