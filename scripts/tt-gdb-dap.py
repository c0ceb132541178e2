# SPDX-License-Identifier: GPL-2.0-or-later
"""The way back in editors: stepBack and reverseContinue for gdb's own adapter.

scripts/tt-gdb.py sources this file in a gdb that was started with -i=dap. gdb's
adapter (up to 16) has neither request, so that an editor would show no buttons
for them. It must be read before the editor asks what the adapter can do:

    gdb -i=dap -x scripts/tt-gdb.py
"""
import gdb
from gdb.dap.events import exec_and_expect_stop
from gdb.dap.server import capability, request
from gdb.dap.state import set_thread


@capability('supportsStepBack')
@request('stepBack', response=False)
def step_back(*, threadId: int, granularity: str = 'statement', **_rest):
    set_thread(threadId)
    exec_and_expect_stop('reverse-stepi' if granularity == 'instruction'
                         else 'reverse-next')


@request('reverseContinue', response=False)
def reverse_continue(*, threadId: int, **_rest):
    set_thread(threadId)
    exec_and_expect_stop('reverse-continue')
