/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What only a debugger knows of a program: its frames, and where its names are. gdb is
   started for one question, with commands that are fixed; nothing of the file with the
   symbols is executed. */
import { join } from 'node:path';
import { Refusal, run, withFolder } from './child.mjs';

const SECONDS = 120;
const BEGIN = '--- answer';
const DISCONNECTED = /^(Ending remote debugging\.|\[Inferior .*)$/gm;

const quoted = text => `"${text.replace(/[\\"]/g, '\\$&')}"`;

export class Debugger {
    constructor({ gdb, symbols, offset }) {
        this.gdb = gdb;
        this.symbols = symbols;
        this.offset = offset;
    }

    async run(commands, signal) {
        const load = this.symbols ?
            [`add-symbol-file ${quoted(this.symbols)} -o ${this.offset}`] : [];
        const all = ['set pagination off', 'set width 0', 'set confirm off',
                     'set architecture i386:x86-64', ...load, ...commands];
        const args = ['-nx', '-q', '-batch', '-iex', 'set auto-load off',
                      ...all.flatMap(c => ['-ex', c])];
        const { status, out, err } = await run(this.gdb, args,
                                               { signal, seconds: SECONDS });

        if (status === 127) {
            throw new Refusal(`cannot run '${this.gdb}', which backtraces and names ` +
                              'need: install gdb, or give its path with --gdb');
        }
        return { out, err };
    }

    /* The address of @name, as a number in hex. */
    async addressOf(name, signal) {
        if (!this.symbols) {
            throw new Refusal(`'${name}' is a name of a program: start tt mcp with ` +
                              '--symbols and the file that has it');
        }
        const ask = `output/x (unsigned long)&'${name}'`;
        const { out, err } = await this.run([`echo ${BEGIN}\\n`, ask], signal);
        const found = /^0x[0-9a-f]+/.exec(out.split(`${BEGIN}\n`)[1] ?? '');

        if (!found) {
            throw new Refusal(`gdb finds no '${name}' in ${this.symbols}: ` +
                              `${err.trim().split('\n').pop()}`);
        }
        return found[0];
    }

    /* What gdb says to @command at a vCPU. QEMU serves gdb only as long as that takes. */
    at(replay, cpu, command, signal) {
        return withFolder(async folder => {
            const path = join(folder, 'gdb');
            const said = await replay.monitor(
                `gdbserver unix:${path.replaceAll(',', ',,')},server=on,wait=off`);

            if (/error|could not|cannot/i.test(said.replaceAll(path, ''))) {
                throw new Refusal(said);
            }
            try {
                const { out, err } = await this.run([
                    `target remote ${path}`, `thread ${cpu + 1}`, `echo ${BEGIN}\\n`,
                    command, 'disconnect'], signal);
                if (/^(Unknown thread|Invalid thread ID)/m.test(err)) {
                    throw new Refusal(`there is no vCPU ${cpu}`);
                }
                const said = out.split(`${BEGIN}\n`)[1]?.replace(DISCONNECTED, '').trim();

                if (!said) {
                    throw new Refusal(`gdb: ${err.trim().split('\n').pop()}`);
                }
                return said;
            } finally {
                await replay.monitor('gdbserver none');
            }
        });
    }
}
