/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The tools that tt mcp offers. What a tool says is text for people and agents, as tt and
   the monitor print it. Nothing of the run is changed by any of them. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { address, at, cpu, parseAddress, parsePlace, parsePosition, place } from
    './arguments.mjs';
import { hex, register } from './registers.mjs';
import { Debugger } from './debugger.mjs';
import { Refusal, run, withFolder } from './child.mjs';
import { pngOfPpm } from './png.mjs';

const MEMORY_MAX = 4096;                // bytes of one question
const LINES_MAX = 1000;

const text = said => ({ content: [{ type: 'text', text: said || '(nothing)' }] });
const count = (most, fallback, what) =>
    z.number().int().min(1).max(most).optional()
        .describe(`${what} (default: ${fallback})`);
const position = z.union([z.string(), z.number()]).optional();

export function makeTools(options, replay) {
    const gdb = new Debugger(options);
    const names = options.symbols ?
        ['--symbols', options.symbols, '--offset', options.offset] : [];

    /* ---- with the tt tool ---- */

    async function tt(args, { signal, ...how } = {}) {
        const { status, out, err } = await run(options.tt, args, { signal, ...how });
        const why = err.split('\nusage:')[0].trim().replace(/^tt: /gm, '');

        if (status) {
            throw new Refusal([why, out.trim()].filter(Boolean).join('\n'));
        }
        return [out.trimEnd(), why].filter(Boolean).join('\n');
    }

    const given = (name, value) => value === undefined ? [] : [name, String(value)];
    const inRun = (name, value) =>
        value === undefined ? [] : [name, parsePosition(value, name.slice(2))];

    async function here() {
        await replay.ready();
        return String((await replay.state()).position);
    }

    /* ---- with the replay ---- */

    async function stands(reason) {
        const s = await replay.state();
        const why = s.diverged ? `\nthe replay is not exact: ${s.divergence}` :
            s.damage ? `\n${s.damage}` : '';

        const pc = (await replay.monitor('x/1xb $pc', s.cpu)).split(':')[0];

        return `position ${s.position} (${reason}) of ${s.start} to ${s.end}, ` +
            `vCPU ${s.cpu}, pc 0x${pc}${why}`;
    }

    /* The vCPU that a question is about: the one whose turn it is. */
    const cpuOf = async a => a.cpu ?? (await replay.state()).cpu;

    async function move(to, { signal, progress }) {
        await replay.ready();
        signal?.throwIfAborted();
        if (to !== undefined) {
            return replay.goto(parsePlace(to), signal, progress);
        }
        return null;
    }

    /* At a place, and nobody else moves meanwhile. */
    const standing = use => (args, how) => replay.alone(async () => {
        how.signal?.throwIfAborted();
        await move(args.at, how);
        return use(args, how);
    });

    async function addressFor(where, signal) {
        const { base, sign, offset } = parseAddress(where);
        const start = /^[$\d]/.test(base) ? base : await gdb.addressOf(base, signal);

        return `${start}${sign}${offset}`;
    }

    /* The monitor has other names for registers than gdb, so it gets a number. */
    async function numberFor(where, cpu, signal) {
        const { base, sign, offset } = parseAddress(where);
        const start = base.startsWith('$') ?
            register(await replay.monitor('info registers', cpu), base) :
            BigInt(/^\d/.test(base) ? base : await gdb.addressOf(base, signal));
        const by = BigInt(offset || 0);

        return hex(sign === '-' ? start - by : start + by);
    }

    const tools = [];
    const tool = (name, description, inputSchema, use) =>
        tools.push({ name, description, inputSchema, use });

    tool('info', 'What was recorded (machine, command line, length, checkpoints, ' +
         'branches), and where the replay stands.', {},
         (_, how) => replay.alone(async () => {
             const about = await tt(['info', '--', options.run], how);
             await replay.ready();
             return text(`${about}\n\nThe replay: ${await stands('here')}`);
         }));

    tool('goto', 'Moves the replay to another position, forwards or backwards.',
         { to: place },
         ({ to }, how) => replay.alone(async () => {
             how.signal?.throwIfAborted();
             const { reason } = await move(to, how);
             return text(await stands(reason));
         }));

    tool('find', 'Positions at which a condition becomes true: a C expression of ' +
         'registers ($rip, $rdi), memory (*(u32 *)0x1000) and, with symbols, names ' +
         '($rip == do_exit, *(u64 *)&jiffies > 5), with debug information also variables ' +
         'and members (thing->count > 3). "EXPRESSION at ADDRESS" and "at ' +
         'ADDRESS" are evaluated only where that address is executed. The replay stays ' +
         'where it is.',
         { condition: z.string(),
           which: z.enum(['all', 'first', 'last']).optional().describe('default: all'),
           changes: z.boolean().optional().describe('where the value changes instead'),
           written: z.boolean().optional().describe(
               'where the memory that it is the value of is written instead'),
           monotone: z.boolean().optional().describe(
               'it stays true once it is true: bisection, fast in a run of any length'),
           from: position.describe('from this position on'),
           to: position.describe('up to this position'),
           limit: count(LINES_MAX, 100, 'at most so many') },
         async (a, how) => text(await tt(
             ['find', '--quiet', '--qemu', options.qemu, ...names,
              `--${a.which ?? 'all'}`,
              ...(a.changes ? ['--changes'] : []), ...(a.written ? ['--written'] : []),
              ...(a.monotone ? ['--monotone'] : []),
              ...inRun('--from', a.from), ...inRun('--to', a.to),
              '--limit', String(a.limit ?? 100), '--', options.run, a.condition], how)));

    tool('origin', 'Where a value came from: who wrote it last, what that was copied ' +
         'or computed from, and so on back to an input (a port, a device, a disk, a ' +
         'constant).',
         { place: z.string().describe('A register ($rax) or memory (*(u64 *)0x1000, ' +
                                      '*(u32 *)&name with symbols)'),
           position: position.describe('default: where the replay stands'),
           depth: count(64, 3, 'follow through so many computations'),
           nodes: count(10000, 100, 'at most so many writes'),
           within: z.number().int().min(1).optional().describe(
               'look for each write no more than so many positions back') },
         async (a, how) => text(await tt(
             ['origin', '--quiet', '--qemu', options.qemu, ...names,
              ...given('--depth', a.depth), ...given('--nodes', a.nodes),
              ...given('--within', a.within), '--', options.run,
              a.position === undefined ? await replay.alone(here) :
              parsePosition(a.position, 'position'), a.place], how)));

    tool('registers', 'The registers of a vCPU.', { at, cpu },
         standing(async a => text(`${await stands('here')}\n` +
                                  await replay.monitor('info registers', await cpuOf(a)))));

    tool('memory', 'Memory of the guest, in hexadecimal.',
         { at, address, cpu,
           length: count(MEMORY_MAX, 64, 'bytes'),
           unit: z.union([1, 2, 4, 8].map(n => z.literal(n))).optional().describe(
               'bytes of a number (default: 1)'),
           physical: z.boolean().optional().describe(
               'the address is physical; otherwise it is as the vCPU sees it') },
         standing(async (a, { signal }) => {
             const unit = a.unit ?? 1, size = { 1: 'b', 2: 'h', 4: 'w', 8: 'g' }[unit];
             const n = Math.ceil((a.length ?? 64) / unit);

             const turn = await cpuOf(a);
             const where = await numberFor(a.address, turn, signal);
             const said = await replay.monitor(
                 `${a.physical ? 'xp' : 'x'}/${n}x${size} ${where}`, turn);

             if (!/^[0-9a-f]+:( 0x[0-9a-f]+)+$/m.test(said)) {
                 throw new Refusal(`there is nothing to be read at ${where}: ` +
                                   said.split('\n')[0].trim());
             }
             return text(said);
         }));

    tool('disassemble', 'Instructions in memory, by gdb.',
         { at, address: address.optional().describe('default: where the vCPU is'), cpu,
           count: count(200, 10, 'instructions') },
         standing(async (a, { signal }) => {
             const where = await addressFor(a.address ?? '$pc', signal);

             return text(await gdb.at(replay, await cpuOf(a),
                                      `x/${a.count ?? 10}i ${where}`, signal));
         }));

    tool('backtrace', 'The frames of the program that runs, by gdb. Without its ' +
         'symbols (an ELF file with debug information) gdb guesses all but the first.',
         { at, cpu, frames: count(200, 20, 'at most so many') },
         standing(async (a, { signal }) => text(await gdb.at(
             replay, await cpuOf(a), `backtrace ${a.frames ?? 20}`, signal))));

    tool('console', 'What the guest had written to its first serial port when it was ' +
         'at a position: the position of each line, and the line.',
         { to: position.describe('what was written before this position; default: ' +
                                 'where the replay stands'),
           from: position.describe('lines that begin at this position or later'),
           lines: count(LINES_MAX, 50, 'the last of these lines, so many') },
         async (a, how) => text(await tt(
             ['console', ...inRun('--from', a.from), '--to',
              a.to === undefined ? await replay.alone(here) : parsePosition(a.to, 'to'),
              '--last', String(a.lines ?? 50), '--', options.run], how)));

    tool('screenshot', 'The screen of the guest, as a picture (of VGA, bochs-display ' +
         'and virtio-gpu).', { at },
         standing(() => withFolder(async folder => {
             const path = join(folder, 'screen.ppm');

             await replay.ask('screendump', { filename: path });
             const { width, height, data } = pngOfPpm(await readFile(path));
             const about = `${await stands('here')}\n${width} x ${height} pixels`;
             const image = data.toString('base64');

             return { content: [{ type: 'text', text: about },
                                { type: 'image', data: image, mimeType: 'image/png' }] };
         })));

    tool('events', 'What the log has around a position: inputs and outputs of the ' +
         'vCPUs, interrupts, writes of devices to memory, marks.',
         { position: position.describe('default: where the replay stands'),
           before: z.number().int().min(0).max(LINES_MAX).optional().describe(
               'events before it (default: 10)'),
           after: z.number().int().min(0).max(LINES_MAX).optional().describe(
               'events from it on (default: 10)'),
           kinds: z.array(z.string()).max(40).optional().describe(
               'only these kinds, as they are printed (intr, pio-out, ram, ...)') },
         async (a, how) => {
             const pos = a.position === undefined ? await replay.alone(here) :
                 parsePosition(a.position, 'position');
             const kinds = (a.kinds ?? []).flatMap(k => ['--kind', k]);
             const before = await eventsBefore(pos, a.before ?? 10, kinds, how);
             const after = a.after === 0 ? '' : await tt(
                 ['log', ...kinds, '--from', pos, '--limit', String(a.after ?? 10), '--',
                  options.run], how);

             return text([...before, `--- position ${pos}`, after].filter(Boolean)
                 .join('\n'));
         });

    /* The log is read from ever further back, and the last lines are kept. */
    async function eventsBefore(pos, n, kinds, how) {
        const end = BigInt(pos);
        let lines = [];

        for (let span = 4096n; n && lines.length < n; span *= 16n) {
            const from = end > span ? end - span : 0n;

            lines = [];
            await tt(['log', ...kinds, '--from', String(from), '--to', pos, '--',
                      options.run],
                     { ...how, line: l => {
                         lines.push(l);
                         if (lines.length > n) {
                             lines.shift();
                         }
                     } });
            if (!from) {
                break;
            }
        }
        return lines;
    }

    return tools;
}
