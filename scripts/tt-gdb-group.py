# SPDX-License-Identifier: GPL-2.0-or-later
"""Travel of all VMs of a group in one gdb, which has the replay of each as an inferior.

scripts/tt-gdb.py sources this file after tt-gdb-frames.py, and what is defined in both is
known here. The tt tool knows which positions fit together.
"""
# pylint: disable=undefined-variable
import atexit
import json
import os
import re
import shutil
import subprocess
import tempfile
import time

import gdb

# ---- replays that gdb starts ----

class Replays:
    """QEMUs that end with gdb."""

    PATIENCE = 60

    def __init__(self):
        self.folder, self.processes = None, []

    def start(self, qemu, run):
        """Returns the path of its gdb socket."""
        if not self.folder:
            self.folder = tempfile.mkdtemp(prefix='tt-gdb-')
            atexit.register(self.end)
        base = os.path.join(self.folder, str(len(self.processes)))
        with open(f'{base}.stderr', 'wb') as err:
            process = subprocess.Popen(
                [*self.guarded(), qemu, '-tt', f'replay,dir={run.replace(",", ",,")}',
                 '-S', '-display', 'none', '-serial', 'null', '-monitor', 'none',
                 '-chardev', f'socket,id=ttgdb,path={base}.sock,server=on,wait=off',
                 '-gdb', 'chardev:ttgdb'], stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL, stderr=err, start_new_session=True)
        self.processes.append(process)
        until = time.monotonic() + self.PATIENCE
        while not self.is_listening(f'{base}.sock'):
            if process.poll() is not None or time.monotonic() > until:
                with open(f'{base}.stderr', encoding='utf-8', errors='replace') as said:
                    why = said.read().strip()
                raise gdb.GdbError(f'tt: {run} cannot be replayed: '
                                   f'{why or "QEMU does not respond"}')
            time.sleep(.02)
        return f'{base}.sock'

    @staticmethod
    def is_listening(path):
        """The file of a socket exists some time before it takes connections."""
        with open('/proc/net/unix', encoding='utf-8', errors='replace') as sockets:
            lines = [line.rstrip('\n').split(None, 7) for line in sockets]
        return any(words[3] == '00010000' and words[7:] == [path] for words in lines)

    @staticmethod
    def guarded():
        """A gdb that is killed leaves none behind."""
        return ['setpriv', '--pdeathsig', 'KILL'] if shutil.which('setpriv') else []

    def end(self):
        for process in self.processes:
            process.kill()
            process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


started = Replays()


def connect(path, run):
    """A new inferior, or the first if it is nothing yet; it stays selected."""
    if gdb.selected_inferior().pid or len(gdb.inferiors()) > 1:
        before = {inferior.num for inferior in gdb.inferiors()}
        gdb.execute('add-inferior -no-connection', to_string=True)
        select(next(i.num for i in gdb.inferiors() if i.num not in before))
    patience = gdb.parameter('remotetimeout')   # 2 s, which a busy host exceeds
    gdb.execute(f'set remotetimeout {max(patience, Replays.PATIENCE)}')
    try:
        gdb.execute(f'target remote {path}', to_string=True)
    except gdb.error as error:
        raise gdb.GdbError(f'tt: gdb cannot connect to the replay of {run}: {error}') from None
    finally:
        gdb.execute(f'set remotetimeout {patience}')
    return gdb.selected_inferior().num


# ---- the group ----

class Group:
    """The runs of a group, each an inferior."""

    def __init__(self, path, members):
        self.path, self.members = path, members         # {name: number of its inferior}

    def here(self):
        """The member that is selected."""
        num = gdb.selected_inferior().num
        for name, inferior in self.members.items():
            if inferior == num:
                return name
        raise gdb.GdbError('tt: this inferior is not a member of the group: "tt group '
                           'when" lists the members')

    def look(self):
        """{member: position}, of those whose replays are there, and the names of the others.
        That one has ended gdb notices when it asks."""
        at, gone = {}, []
        with selection_kept():
            for name, num in self.members.items():
                try:
                    select(num)
                    at[name] = when()[0]
                except (gdb.error, gdb.GdbError, StopIteration):
                    if is_there(num):
                        raise
                    gone.append(name)
        return at, gone

    def positions(self):
        at, gone = self.look()
        if gone:
            raise self.ended(gone)
        return at

    def ended(self, gone):
        which = ', '.join(f'of {name} (inferior {self.members[name]})' for name in gone)
        return gdb.GdbError(f'tt: the replay {which} has ended: open the group again'
                            if len(gone) == 1 else
                            f'tt: the replays {which} have ended: open the group again')

    def cut(self, place, at_most=()):
        """{member: position}. The cut through a place; or the greatest that is after
        neither it nor any of the others."""
        args = [f'--at-most={name}:{pos}' for name, pos in dict(at_most).items()]
        said = ask('group', 'cut', self.path, f'{place[0]}:{place[1]}', *args, '--json')
        return json.loads(said)['cut']

    def cut_of_replays(self, place):
        """The same, in what the replays have: while the group is recorded its logs may have
        more by now."""
        cut, ends = self.cut(place), {}
        with selection_kept():
            for name, num in self.members.items():
                select(num)
                ends[name] = when()[1]
        short = [name for name in cut if cut[name] > ends[name]]
        if short:
            cut = self.cut(place, ends)
        if cut[place[0]] < int(place[1]):
            who = [place[0]] if ends[place[0]] < int(place[1]) else short
            said = ', of '.join(f'{name} ends at position {ends[name]}' for name in who)
            raise gdb.GdbError(f'tt: the log has more by now, but the replay of {said}: open '
                               'the group again')
        return cut

    def together(self, at):
        """The greatest cut after none of these positions: they themselves, if they are
        one."""
        return self.cut(next(iter(at.items())), at)

    def stand_at(self, cut):
        with selection_kept():
            for name, num in self.members.items():
                select(num)
                if when()[0] != cut[name]:
                    go(cut[name])

    def say(self):
        here, (at, gone) = gdb.selected_inferior().num, self.look()
        for name, num in self.members.items():
            gdb.write(f'{"*" if num == here else " "} {name:20} {at.get(name, "-"):>20}  '
                      f'inferior {num}\n')
        if gone:
            raise self.ended(gone)
        why = self.why_apart(at)
        if why:
            gdb.write(f'These positions are {why}.\n"tt group goto" goes to one moment.\n')

    def why_apart(self, at):
        """None: they are one moment."""
        try:
            return None if self.together(at) == at else \
                'not one moment: a member has received a frame that has not been sent ' \
                'yet, or that is lost'
        except gdb.GdbError as error:       # a window begins too late; notes come before
            said = str(error).splitlines()[-1].removeprefix('tt: ')
            return f'not known to be one moment: {said}'


the_group = None


def is_there(num):
    """After "disconnect" of any inferior, gdb has no threads of the others."""
    try:
        return any(i.num == num and i.pid and i.threads() for i in gdb.inferiors())
    except gdb.error:                   # it is lost: gdb has noticed that now
        return False


def group(whole=True):
    """The one that is open; @whole: all of its replays are there, as far as gdb knows."""
    if not the_group:
        raise gdb.GdbError('tt: no group is open: use "tt group open DIR|FILE"')
    gone = [name for name, num in the_group.members.items() if not is_there(num)]
    if whole and gone:
        raise the_group.ended(gone)
    return the_group


class TtGroup(gdb.Command):
    """Travel with all VMs of a group."""

    def __init__(self):
        super().__init__('tt group', gdb.COMMAND_RUNNING, prefix=True)


class GroupOpen(TtCommand):
    """Make each member of a group an inferior: tt group open DIR|FILE

A member that an inferior already replays stays there. For the others, replays are
started, which end with gdb."""

    name, complete_with = 'group open', gdb.COMPLETE_FILENAME

    def invoke(self, arg, from_tty):
        global the_group
        path = os.path.expanduser(arg.strip())
        if not path:
            raise gdb.GdbError('tt group open takes the directory of a group, or the file '
                               'that lists its runs')
        info = json.loads(ask('group', 'info', path, '--json'))
        known.clear()                   # of runs that may have been recorded anew
        met.clear()                     # inferiors of a group that has ended
        there, members = replays(), {}
        for member in info['members']:
            run = os.path.realpath(member['run'])
            members[member['name']] = there[run] if run in there else \
                connect(started.start(built('qemu-system-x86_64'), run), run)
        select(next(iter(members.values())))
        the_group = Group(path, members)
        the_group.say()


class GroupWhen(TtCommand):
    """Show the position of each member, and whether they are one moment."""

    name = 'group when'

    def invoke(self, arg, from_tty):
        group(whole=False).say()


class GroupGoto(TtCommand):
    """Go to a place of one member, and all others with it: tt group goto [MEMBER:][PLACE]

PLACE is as for "tt goto"; without it, the member stays where it is. Without MEMBER, it is
that of the selected inferior. Each other member goes as far as it can have been at that
moment: to its latest position at which no member has received a frame that has not been
sent yet."""

    name = 'group goto'

    @staticmethod
    def parse(g, text):
        """(member, place). An expression may have "::" in it."""
        for name in g.members:
            if text.startswith(f'{name}:') and not text.startswith(f'{name}::'):
                return name, text[len(name) + 1:].strip()
        found = re.match(r'([^:]+):(?!:)', text)
        if found:
            raise gdb.GdbError(f"tt: the group has no member '{found.group(1)}'")
        return g.here(), text

    def invoke(self, arg, from_tty):
        g = group()
        name, place = self.parse(g, arg.strip())
        if any(f' {other}:' in f' {word}' for other in g.members for word in place.split()
               if not word.startswith(f'{other}::')):
            raise gdb.GdbError('tt: tt group goto takes one place: the other members go with '
                               'that one')
        before = gdb.selected_inferior().num
        origin = g.positions()
        select(g.members[name])
        try:
            place = place_of(place) if place else ''
            if place.startswith('0x'):
                place = str(int(place, 16))
            if place and not place.isdigit():
                go(place)
            # The tool refuses a number that is not in the run.
            g.stand_at(g.cut_of_replays((name, place if place.isdigit() else when()[0])))
        except BaseException:           # Ctrl-C, too
            g.stand_at(origin)
            select(before)
            raise
        g.say()


# ---- back to the latest hit of all ----

class Stops:
    """Which breakpoints gdb stops for inside; it does not show them."""

    def __enter__(self):
        self.numbers = []
        self.loud = [b for b in gdb.breakpoints() or () if not b.silent]
        self.show(False)
        gdb.events.stop.connect(self.seen)
        return self

    def __exit__(self, *unused):
        gdb.events.stop.disconnect(self.seen)
        self.show(True)

    def show(self, on):
        for b in self.loud:
            if b.is_valid():
                b.silent = not on

    def seen(self, event):
        self.numbers = [b.number for b in getattr(event, 'breakpoints', ())]


def may_stop(num):
    """Can the inferior meet any breakpoint? A search that finds none goes all the way."""
    for b in gdb.breakpoints() or ():
        if b.type in WATCHPOINTS:
            places = [(num if home_of(b) == num else 0,)]
        elif hasattr(b, 'locations'):               # gdb 13
            places = [place.thread_groups or () for place in b.locations]
        else:
            places = [(num,)]
        if b.enabled and any(num in place for place in places):
            return True
    return False


def back_to_hit():
    """(position, numbers of breakpoints) of the last hit before here; None: there is
    none, and the VM is at the start."""
    with Stops() as stops, Forward():
        gdb.execute('reverse-continue', to_string=True)
    pos, _, how = when()
    if how == 'interrupted':
        raise gdb.GdbError('tt: interrupted; all members are where they were')
    return (pos, stops.numbers) if stops.numbers else None


class GroupReverseContinue(TtCommand):
    """Go back to the causally latest hit of a breakpoint or watchpoint in any member.

No other hit comes after it by way of frames. If that is true of several hits, the selected
inferior's is taken. All members go to that moment."""

    name = 'group reverse-continue'

    def invoke(self, arg, from_tty):
        g = group()
        origin = g.positions()
        try:
            start = g.together(origin)
            g.stand_at(start)
            hits = self.search(g)
            if not hits:
                raise gdb.GdbError('tt: no member reaches a breakpoint or watchpoint '
                                   'before here')
            name, cut = self.latest(g, hits, start)
            g.stand_at(cut)
        except BaseException:           # Ctrl-C, too
            g.stand_at(origin)
            raise
        select(g.members[name])
        pos, numbers = hits[name]
        gdb.write(f'breakpoint {", ".join(map(str, numbers))} of {name}, at position '
                  f'{pos}\n')
        gdb.execute('frame')

    @staticmethod
    def search(g):
        """{member: its last hit}, of those that have one."""
        hits = {}
        with selection_kept():
            for name, num in g.members.items():
                select(num)
                found = back_to_hit() if may_stop(num) else None
                if found:
                    hits[name] = found
        return hits

    @staticmethod
    def latest(g, hits, start):
        """(member, the cut in which it stands at its hit): one whose hit is before no
        other's."""
        here = gdb.selected_inferior().num
        first = why = None
        for name in sorted(hits, key=lambda n: g.members[n] != here):
            pos = hits[name][0]
            try:
                cut = g.cut((name, pos), start)
            except gdb.GdbError as error:   # another member's window begins after it
                why = why or error
                continue
            # What another member does at cut[other] or later may come from the hit.
            if all(hits[other][0] < cut[other] for other in hits if other != name):
                return name, {**cut, name: pos}
            first = first or (name, {**cut, name: pos})
        if not first:
            raise why
        return first                    # each before the other: positions are too coarse


TtGroup()
for group_command in (GroupOpen, GroupWhen, GroupGoto, GroupReverseContinue):
    group_command()
