# SPDX-License-Identifier: GPL-2.0-or-later
"""One step forwards or back, in the unit that the user has chosen (Koju et al., VEE
2005, section 3: the granularity is switched while debugging)."""

FORWARDS = {'instruction': 'stepi', 'line': 'step', 'call': 'next', 'function': 'finish'}
BACK = {unit: f'reverse-{command}' for unit, command in FORWARDS.items()}


class StepUnit(gdb.Parameter):
    """The unit of "tt step" and "tt back"."""

    set_doc = 'Set the unit of "tt step" and "tt back".'
    show_doc = 'Show the unit of "tt step" and "tt back".'
    __doc__ = '''instruction; line: a source line, into functions; call: a source line,
over the functions that it calls; function: to the function's end or beginning.'''

    def __init__(self):
        super().__init__('tt-step-unit', gdb.COMMAND_RUNNING, gdb.PARAM_ENUM,
                         list(FORWARDS))
        self.value = 'instruction'

    def get_set_string(self):
        return ''

    def get_show_string(self, value):
        return f'"tt step" and "tt back" go by one {value}.'


class StepMemory(gdb.Parameter):
    """The memory of the undo log of single steps."""

    set_doc = 'Set the memory of the undo log of single steps, in the replay that gdb debugs.'
    show_doc = 'Show the memory of the undo log of single steps.'
    __doc__ = '''A number of bytes, with K, M or G, up to 1G. 0: no undo log; steps back
then use checkpoints.'''

    def __init__(self):
        super().__init__('tt-step-memory', gdb.COMMAND_RUNNING, gdb.PARAM_STRING)
        self.value = ''

    def get_set_string(self):
        packet(f'qtt.step-memory:{self.value}')
        return ''

    def get_show_string(self, value):
        try:
            size = int(packet('qtt.step-memory'), 16)
        except gdb.GdbError as error:
            return str(error)
        return f'The undo log of single steps has {size} bytes of memory.'


class StepStops:
    """Did a breakpoint or a signal (Ctrl-C) end what is done inside?"""

    def __enter__(self):
        self.by_user = False
        gdb.events.stop.connect(self._take)
        return self

    def __exit__(self, *unused):
        gdb.events.stop.disconnect(self._take)

    def _take(self, event):
        self.by_user |= isinstance(event, (gdb.BreakpointEvent, gdb.SignalEvent))


def steps(command, n):
    with Forward():
        if not command.endswith('finish'):
            gdb.execute(f'{command} {n}')
            return
        for _ in range(n):
            with StepStops() as stops:
                gdb.execute(command)
            if stops.by_user:
                return


def by_unit(commands, arg):
    n = number(arg, 'number') if arg.strip() else 1
    unit = gdb.parameter('tt-step-unit')
    try:
        if n:
            steps(commands[unit], n)
    except gdb.error as error:
        if 'bounds of current function' not in str(error):
            raise
        raise gdb.GdbError(f'tt: gdb knows no function here, so it cannot step by one {unit}: '
                           'load its symbols with "symbol-file", or "set tt-step-unit '
                           'instruction"') from None


class Step(TtCommand):
    """One step forwards, or N: tt step [N]. "set tt-step-unit" says of what."""

    name = 'step'

    def invoke(self, arg, from_tty):
        by_unit(FORWARDS, arg)


class Back(TtCommand):
    """One step back, or N: tt back [N]. "set tt-step-unit" says of what."""

    name = 'back'

    def invoke(self, arg, from_tty):
        by_unit(BACK, arg)


StepUnit()
StepMemory()
Step()
Back()
