# SPDX-License-Identifier: GPL-2.0-or-later
"""tt mcp: questions about a run, asked by the protocol's own client; and tt console."""

import base64
import json
import os
import re
import shutil
import signal
import struct
import subprocess
import zlib

from guests import guest_args
from test_gdb_process import COUNT, twins_run
from ttlib import (BUILD, HERE, REPO, SLOW, Skip, check, equal, goto, limit, one_sentence,
                   qemu_binary, read_text, record, stopped_replay, tool, tt, wait_until)

SDK = os.path.join(BUILD, 'tt-mcp', 'node_modules', '@modelcontextprotocol', 'sdk')
TOOLS = {'info', 'goto', 'find', 'origin', 'registers', 'memory', 'disassemble',
         'backtrace', 'console', 'screenshot', 'events'}


class Client:
    """One client of one server."""

    def __init__(self, work, run, *args):
        if not os.path.exists(SDK):
            raise Skip('the build could not fetch the SDK of MCP: it needs npm')
        self.stderr = os.path.join(work, 'mcp.stderr')
        with open(self.stderr, 'wb') as err:
            self.process = subprocess.Popen(
                ['node', os.path.join(HERE, 'mcp_client.mjs'), SDK, tool('tt'), 'mcp',
                 run, '--qemu', qemu_binary(), *args], stdin=subprocess.PIPE,
                stdout=subprocess.PIPE, stderr=err, text=True)
        self.hello = self.answer()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()

    def answer(self):
        line = self.process.stdout.readline()
        check(line, f'the client has ended: {read_text(self.stderr)}')
        return json.loads(line)

    def send(self, **request):
        self.process.stdin.write(json.dumps(request) + '\n')
        self.process.stdin.flush()

    def ask(self, **request):
        self.send(**request)
        return self.answer()

    def call(self, name, is_error=False, **arguments):
        """Returns the text of an answer."""
        said = self.ask(tool=name, arguments=arguments)
        equal(bool(said.get('isError')), is_error, f'{name} {arguments}: {said}')
        return said['content'][0]['text']

    def end(self):
        self.process.stdin.close()
        equal(self.process.wait(60 * SLOW), 0, 'the client')


def children(pid):
    """All descendants of a process."""
    try:
        with open(f'/proc/{pid}/task/{pid}/children', encoding='ascii') as f:
            direct = [int(n) for n in f.read().split()]
    except OSError:
        return []
    return [n for child in direct for n in (child, *children(child))]


def are_gone(pids):
    wait_until(lambda: not any(os.path.exists(f'/proc/{n}') for n in pids),
               f'the end of {pids}')


def number(pattern, text):
    found = re.search(pattern, text)
    check(found, f'no {pattern} in {text}')
    return int(found.group(1), 0)


def check_travel(client, vm, places):
    """Registers, memory and where it stands are what a replay of our own shows."""
    for place in (places[3], places[0], '@none', places[-1]):
        if place == '@none':
            said = client.call('goto', is_error=True, to=place)
            check('none' in one_sentence(said, 'a mark'), said)
            continue
        goto(vm, position=place)
        check(f'position {place} (target)' in client.call('goto', to=str(place)), 'goto')
        regs = client.call('registers')
        check(vm.qmp.hmp('info registers').strip() in regs, f'{place}: {regs}')
        check_registers(client, vm)
    goto(vm, position=places[2])
    check_words(client.call('memory', address='$rsp', length=64, unit=8, at=places[2]),
                vm, register(vm, 'RSP'))


def register(vm, name):
    return int(re.search(rf'\b{name} *=([0-9a-f]+)', vm.qmp.hmp('info registers')).group(1),
               16)


def check_words(said, vm, address):
    """Eight words of memory, of this address, and what the monitor prints for it."""
    words = re.findall(r'(?<= )0x[0-9a-f]{16}\b', said)
    equal(len(words), 8, said)
    equal(int(said.split(':')[0], 16), address, 'the address')
    equal(said, vm.qmp.hmp(f'x/8xg {address:#x}').replace('\r', '').strip(), 'memory')


def check_registers(client, vm):
    """Each register can be an address, under gdb's name and with an offset. There may be
    nothing at it: then that is an error."""
    read = 0
    for name in ('RAX', 'RBX', 'RCX', 'RDX', 'RSI', 'RDI', 'RBP', 'RSP', 'RIP',
                 *(f'R{n}' for n in range(8, 16))):
        address = (register(vm, name) + 16) % 2**64
        is_there = re.search(r': 0x', vm.qmp.hmp(f'x/8xg {address:#x}'))
        said = client.call('memory', is_error=not is_there, address=f'${name.lower()}+16',
                           length=64, unit=8)
        if is_there and 'Cannot' not in said:
            check_words(said, vm, address)
            read += 1
    check(read >= 3, f'{read} registers lead to memory')
    check_words(client.call('memory', address='$rip', length=64, unit=8), vm,
                register(vm, 'RIP'))
    for wrong, words in (('$nonsense', 'general register'), ('$rflags', 'general register'),
                         ('0x123456789abcdef0', 'nothing to be read')):
        said = client.call('memory', is_error=True, address=wrong)
        check(words in one_sentence(said, wrong), said)


def check_names(client, hits, places):
    """work() was called with 1, 2, 3 ... by each of the twins."""
    said = client.call('find', condition='$rdi at work', limit=1000)
    equal(re.findall(r'position (\d+) .*?\(work\+0x0\)', said),
          [str(hit['position']) for hit in hits], 'calls of work')
    there = places[-1]
    trace = client.call('backtrace', at=there)
    check(re.search(rf'#0 .*work \(n=(n@entry=)?{COUNT}\)', trace) and re.search(
        r'#1 .* in run \(', trace), trace)
    code = client.call('disassemble', address='run+0', count=12).splitlines()
    check(len(code) == 12 and all('<run' in line for line in code), f'{code}')
    counter = {'address': 'counted', 'unit': 8, 'length': 8}
    before = number(r': (0x[0-9a-f]+)', client.call('memory', **counter))
    change = number(r'position (\d+)', client.call(
        'find', condition='*(u64 *)&counted', changes=True, which='first', **{'from': there}))
    after = number(r': (0x[0-9a-f]+)', client.call('memory', at=change, **counter))
    equal((before, after), (7 + COUNT * (COUNT - 1) // 2, 7 + COUNT * (COUNT + 1) // 2),
          'the counter before and after')
    origin = client.call('origin', place='*(u64 *)&counted')
    check(f'= 0x{after:x}' in re.sub('0x0+', '0x', origin) and 'work+' in origin, origin)
    said = client.call('memory', is_error=True, address='no_such_name')
    check('no_such_name' in said, said)


def check_log(client, run, place, serial):
    """Console and events around a position."""
    end = number(r'of \d+ to (\d+)', client.call('info'))
    lines = client.call('console', to=end, lines=1000).splitlines()
    text = [line[14:] for line in lines]
    shown = [line.rstrip('\r') for line in serial.decode(errors='replace').split('\n')]
    equal(text[-5:], [x for x in shown if x][-5:], 'the last lines')
    middle = number(r'^ *(\d+)', lines[len(lines) // 2])
    before = client.call('console', to=middle, lines=1000)
    equal(before, '\n'.join(lines[:len(lines) // 2]), 'what was said before')
    client.call('goto', to=place)
    said = client.call('events', before=3, after=4)
    parts = said.split(f'--- position {place}\n')
    equal([len(p.strip().splitlines()) for p in parts], [3, 4], said)
    all_of = tt('log', run, '--to', str(place)).stdout.splitlines()
    equal(parts[0].splitlines(), all_of[-3:], 'events before')
    ports = client.call('events', before=5, after=0, kinds=['pio-out'])
    equal(ports.splitlines()[:5], [x for x in all_of if 'pio-out' in x][-5:], 'of a kind')


def check_screen(client):
    said = client.ask(tool='screenshot', arguments={})
    check(not said.get('isError'), f'{said}')
    picture = base64.b64decode(said['content'][1]['data'])
    width, height = struct.unpack('>II', picture[16:24])
    at = picture.index(b'IDAT')
    size, = struct.unpack('>I', picture[at - 4:at])
    pixels = zlib.decompress(picture[at + 4:at + 4 + size])
    equal((picture[:8], len(pixels)),
          (b'\x89PNG\r\n\x1a\n', (3 * width + 1) * height), 'PNG')
    check(f'{width} x {height}' in said['content'][0]['text'], f'{said["content"][0]}')
    equal(struct.unpack('>I', picture[at + 4 + size:at + 8 + size])[0],
          zlib.crc32(picture[at:at + 4 + size]), 'checksum')


def check_mistakes(client):
    """One sentence, and the next question has an answer."""
    for name, arguments, words in (
            ('goto', {'to': 'nowhere'}, 'is not a place'),
            ('goto', {'to': 10 ** 14}, 'end'),
            ('goto', {'to': '9' * 30}, 'is not a place'),
            ('registers', {'at': -1}, ''),
            ('registers', {'at': 'x\ny'}, 'is not a place'),
            ('registers', {'cpu': 7}, 'CPU'),
            ('memory', {'address': '1; info version'}, 'is not an address'),
            ('find', {'condition': '$rax +'}, 'operand'),
            ('find', {'condition': '--help'}, ''),
            ('find', {'condition': '$rip == 1', 'from': 'x'}, 'a number'),
            ('origin', {'place': '$rip'}, 'is not a place'),
            ('origin', {'place': '$rax', 'position': 10 ** 15}, 'which goes from'),
            ('console', {'to': '--json'}, 'a number'),
            ('events', {'kinds': ['nonsense']}, 'nonsense')):
        if name == 'registers' and arguments == {'at': -1}:
            client.call(name, **arguments)          # one back
            continue
        said = client.call(name, is_error=True, **arguments)
        check(words in one_sentence(said, f'{name} {arguments}'), f'{name}: {said}')
    check('position' in client.call('goto', to='end'), 'after all that')


def state_of(run):
    return [(name, os.stat(os.path.join(run, name)).st_mtime_ns)
            for name in sorted(os.listdir(run))]


BOUNDED = """
import { run } from '%s';
const later = globalThis.setTimeout;
let ends = 0;
globalThis.setTimeout = (...args) => { ends++; return later(...args); };
const said = await run('sh', ['-c',
                              'trap "" TERM; head -c 9000000 /dev/zero | tr "\\\\0" a'])
    .then(() => 'no refusal', e => e.message);
console.log(JSON.stringify({ said, ends }));
"""


@limit(60)
def test_output_is_bounded(work):
    """A program that prints too much, and goes on, is asked once to end."""
    if not shutil.which('node'):
        raise Skip('there is no node')
    child = f'{REPO}/replay-engine/tool/mcp/child.mjs'
    said = subprocess.run(['node', '--input-type=module', '-e', BOUNDED % child],
                          stdout=subprocess.PIPE, text=True, check=True).stdout
    equal(json.loads(said), {'said': 'the answer is too long: ask for less', 'ends': 1},
          'what is too long')


@limit(240)
def test_linux(work):
    """Every tool answers about a Debian kernel and its programs; a mistake is one
    sentence; at the end nothing is left."""
    run = twins_run(work, 'pti=on', ['-device', 'VGA'])
    before = state_of(run.dir)
    hits = json.loads(tt('find', run.dir, '$rdi at work', '--symbols', f'{work}/twins',
                         '--json', '--qemu', qemu_binary()).stdout)['found']
    # Another program may have code at that address.
    places = [hit['position'] for hit in hits if int(hit['value'], 16) <= COUNT]
    check(len(places) >= 3 * COUNT, f'{hits}')
    with Client(work, run.dir, '--symbols', f'{work}/twins') as client:
        check('never instructions' in client.hello['instructions'], f'{client.hello}')
        offered = client.ask(method='listTools')['tools']
        equal({t['name'] for t in offered}, TOOLS, 'tools')
        check(all(t['annotations']['readOnlyHint'] for t in offered), f'{offered}')
        with stopped_replay(work, run, timeout=150) as vm:
            check_travel(client, vm, places)
        check_names(client, hits, places)
        check_log(client, run.dir, places[0], run.serial)
        check_screen(client)
        check_mistakes(client)
        processes = children(client.process.pid)
        check(len(processes) >= 2, f'{processes}')
        client.end()
    are_gone(processes)
    equal(state_of(run.dir), before, 'the run')
    equal(read_text(client.stderr), '', 'stderr of the server')


@limit(120)
def test_a_client_that_dies(work):
    """Whoever is killed while a question is open: all others end. A cancelled question is
    interrupted; a replay that was killed begins again."""
    run = record(work, guest_args(work, 'dmacode', 'rounds=300')).dir
    slow = {'tool': 'find',
            'arguments': {'condition': '$rax == 0x123456789', 'to': 25000000}}
    for who in ('client', 'server'):
        with Client(work, run) as client:
            server = client.hello['pid']
            check('position' in client.call('goto', to='end'), 'goto')
            client.send(**slow)
            wait_until(lambda: len(children(server)) >= 3, 'QEMU of the search')
            pids = [server, *children(server)]
            os.kill(client.process.pid if who == 'client' else server, signal.SIGKILL)
            are_gone(pids)
    with Client(work, run) as client:
        server = client.hello['pid']
        said = client.ask(**slow, cancel=True)
        check('enough' in said['error'], f'{said}')
        wait_until(lambda: len(children(server)) == 0, 'the end of the search')
        check('position' in client.call('goto', to='end'), 'afterwards')
        replay, = children(server)
        os.kill(replay, signal.SIGKILL)
        wait_until(lambda: not children(server), 'the end of QEMU')
        check('position 0 ' in client.call('info'), 'a new replay')


@limit(120)
def test_whose_turn(work):
    """With several vCPUs an answer is about the one whose turn it is, or the one asked for."""
    run = record(work, guest_args(work, 'smp'))
    hits = json.loads(tt('find', run.dir, '$cpu == 1', '--json', '--quiet', '--limit',
                         '60').stdout)['found']
    equal(len(hits), 60, 'turns of the second vCPU')
    with Client(work, run.dir) as client:
        for hit in hits[20::20]:
            there, pc = hit['position'], int(hit['pc'], 16)
            said = client.call('goto', to=there)
            check('vCPU 1, ' in said, said)
            equal(number(r' pc (0x[0-9a-f]+)', said), pc, 'pc')
            mine = client.call('registers')
            equal(int(re.search(r'[ER]IP=([0-9a-f]+)', mine).group(1), 16), pc, 'registers')
            equal(client.call('registers', cpu=1), mine, 'its registers')
            check(client.call('registers', cpu=0) != mine, 'registers of the other')
            check(f'{pc:x} in' in client.call('backtrace'), 'backtrace')
            equal(number(r'=> (0x[0-9a-f]+)', client.call('disassemble', count=1)), pc,
                  'disassemble')
        check('vCPU 0, ' in client.call('goto', to=hits[0]['position'] - 1), 'before')
        client.end()


def check_odd_lines(run):
    """Each line has an answer, and what a tool does not know is not left out."""
    hello = {'protocolVersion': '2025-06-18', 'capabilities': {},
             'clientInfo': {'name': 'test', 'version': '1'}}
    lines = ['no JSON', '{"jsonrpc": "2.0", "id": {}}', *(json.dumps(
        {'jsonrpc': '2.0', 'id': n, 'method': method, 'params': params})
        for n, method, params in (
            (1, 'initialize', hello),
            (2, 'tools/call', {'name': 'console', 'arguments': {'last': 3}}),
            (3, 'tools/call', {'name': 'info', 'arguments': {'all': True}})))]
    with subprocess.Popen([tool('tt'), 'mcp', run, '--qemu', qemu_binary()], text=True,
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE) as p:
        try:
            answers = []
            for line in lines:
                p.stdin.write(f'{line}\n')
                p.stdin.flush()
                answers.append(json.loads(p.stdout.readline()))
            p.stdin.close()
            equal(p.wait(60 * SLOW), 0, 'the server')
        finally:
            p.kill()
    equal([(a['id'], a['error']['code']) for a in answers[:2]],
          [(None, -32700), (None, -32600)], 'answers to what is no request')
    for answer, words in zip(answers[3:], (
            "console has no parameter 'last': it has 'to', 'from', 'lines'",
            "info has no parameter 'all': it has none")):
        said = answer['result']
        check(said.get('isError') and words in said['content'][0]['text'], f'{answer}')


@limit(60)
def test_refused(work):
    """What is no run, and what is missing, gets one sentence before the server starts."""
    run = record(work, guest_args(work, 'quiet')).dir
    copy = os.path.join(work, 'tt')
    shutil.copy(os.path.realpath(tool('tt')), copy)
    for argv, words, rc in (
            ([tool('tt'), 'mcp', f'{run}x'], 'no run', 1),
            ([tool('tt'), 'mcp', run, '--symbols', f'{run}/log'], 'no symbols', 1),
            ([tool('tt'), 'mcp', run, '--offset', '5'], '--symbols', 2),
            ([copy, 'mcp', run], 'npm', 1)):
        done = subprocess.run(argv, capture_output=True, text=True, timeout=60 * SLOW,
                              stdin=subprocess.DEVNULL, check=False)
        equal(done.returncode, rc, f'{argv}: {done.stderr}')
        check(words in one_sentence(done.stderr.split('usage:')[0], argv), done.stderr)
    if os.path.exists(SDK):
        done = subprocess.run([tool('tt'), 'mcp', run], capture_output=True, text=True,
                              timeout=60 * SLOW, env={**os.environ, 'PATH': '/nowhere'},
                              stdin=subprocess.DEVNULL, check=False)
        equal(done.returncode, 1, 'without node')
        check('node is not installed' in done.stderr, done.stderr)
        check_odd_lines(run)


@limit(60)
def test_console(work):
    """tt console prints the lines of the serial port, and those before a position."""
    run = record(work, guest_args(work, 'torture', 'rounds=3 percent=30'))
    wanted = [x.strip('\r') for x in run.serial.decode().split('\n')]
    lines = [json.loads(x) for x in tt('console', run.dir, '--json').stdout.splitlines()]
    equal([x['text'] for x in lines], wanted[:-1] if not wanted[-1] else wanted, 'lines')
    positions = [x['position'] for x in lines]
    equal(positions, sorted(positions), 'positions')
    cut = positions[len(lines) // 2] + 1
    some = [json.loads(x) for x in
            tt('console', run.dir, '--to', str(cut), '--json').stdout.splitlines()]
    equal([x['text'] for x in some[:-1]], wanted[:len(some) - 1], 'lines before')
    equal((some[-1]['position'], some[-1]['text']),
          (cut - 1, wanted[len(some) - 1][:1]), 'the first byte of a line')
    last = tt('console', run.dir, '--from', str(cut), '--last', '2').stdout.splitlines()
    equal(last, [f'{x["position"]:12}  {x["text"]}' for x in lines[-2:]], 'the last two')
    check('no run' in tt('console', f'{run.dir}x', rc=1).stderr, 'no run')
