/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The programs that tt mcp starts. Each is killed when this process ends, whatever ends
   it; run() bounds it in time and in what it prints, too. */
import { spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const OUTPUT_MAX = 4 << 20;             // characters of one program
const PATIENCE_MS = 3000;               // after a request to end

const living = new Set();

/* A sentence for whoever asked; anything else that is thrown is a fault of ours. */
export class Refusal extends Error {}

/* setpriv (util-linux) lets the kernel kill it with us. */
export function start(program, args, options = {}) {
    const child = spawn('setpriv', ['--pdeathsig', 'KILL', '--', program, ...args],
                        { stdio: ['pipe', 'pipe', 'pipe'], ...options });

    living.add(child);
    child.on('close', () => living.delete(child));
    child.on('error', () => living.delete(child));
    child.stdin.on('error', () => {});  // it has ended: that is said elsewhere
    return child;
}

export function killAll() {
    for (const child of living) {
        child.kill('SIGKILL');
    }
}

export const noSetpriv = error =>
    new Refusal(`cannot run setpriv (util-linux): ${error.message}`);

/* First politely: tt ends its replays then. */
function endSoon(child) {
    child.kill('SIGTERM');
    setTimeout(() => child.kill('SIGKILL'), PATIENCE_MS).unref();
}

/* Returns { status, out, err }. @signal: an AbortSignal; @line: takes each line of stdout
   instead of collecting them. */
export function run(program, args, { signal, seconds, line } = {}) {
    return new Promise((done, failed) => {
        const child = start(program, args);
        const text = { out: '', err: '' };
        let refusal = null, rest = '';

        const stop = why => {
            if (!refusal) {
                refusal = new Refusal(why);
                text.out = rest = '';
                endSoon(child);
            }
        };
        const late = () => stop(`${program} did not end within ${seconds} seconds`);
        const clock = seconds && setTimeout(late, seconds * 1000);
        const cancel = () => stop('cancelled');

        signal?.addEventListener('abort', cancel);
        if (signal?.aborted) {
            cancel();
        }
        child.stdin.end();
        child.stdout.setEncoding('utf8').on('data', more => {
            if (refusal) {
                return;                 // nobody wants it any more
            }
            if (line) {
                const lines = (rest + more).split('\n');
                rest = lines.pop();
                lines.forEach(line);
            } else if ((text.out += more).length > OUTPUT_MAX) {
                stop('the answer is too long: ask for less');
            }
        });
        child.stderr.setEncoding('utf8').on('data', more => {
            text.err = (text.err + more).slice(0, OUTPUT_MAX);
        });
        const end = (error, status) => {
            clearTimeout(clock);
            signal?.removeEventListener('abort', cancel);
            if (error || refusal) {
                failed(error ?? refusal);
            } else {
                done({ status, ...text });
            }
        };
        child.on('error', e => end(noSetpriv(e)));
        child.on('close', status => end(null, status));
    });
}

/* For files that live as long as one question. */
export async function withFolder(use) {
    const folder = await mkdtemp(join(tmpdir(), 'tt-mcp-'));

    try {
        return await use(folder);
    } finally {
        await rm(folder, { recursive: true, force: true });
    }
}
