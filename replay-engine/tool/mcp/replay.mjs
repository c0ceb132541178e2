/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The replay of tt mcp: one QEMU, started by the first question that needs it, spoken to
   by QMP on its standard input and output. One movement at a time. */
import { Refusal, noSetpriv, start } from './child.mjs';

const START_SECONDS = 120;
const STDERR_MAX = 4096;

export class Replay {
    constructor(qemu, run) {
        this.qemu = qemu;
        this.dir = run;
        this.child = null;
        this.last = Promise.resolve();
    }

    /* Questions take turns: what one does at a position, no other moves away from. */
    alone(use) {
        const mine = this.last.then(use);

        this.last = mine.catch(() => {});
        return mine;
    }

    /* ---- the process ---- */

    async ready() {
        if (!this.child) {
            this.begin();
            const clock = setTimeout(() => this.child?.kill('SIGKILL'),
                                     START_SECONDS * 1000);

            try {
                const { capabilities } = await this.greeted;

                await this.ask('qmp_capabilities', { enable: capabilities });
            } finally {
                clearTimeout(clock);
            }
        }
    }

    begin() {
        const child = start(this.qemu, [
            '-tt', `replay,dir=${this.dir.replaceAll(',', ',,')}`, '-S', '-nodefaults',
            '-display', 'none', '-serial', 'none', '-monitor', 'none', '-qmp', 'stdio']);
        let rest = '';

        this.child = child;
        this.pending = new Map();
        this.nextId = 1;
        this.said = '';
        this.onProgress = null;
        this.greeted = new Promise((done, failed) => {
            this.pending.set('greeting', { done, failed });
        });
        child.stdout.setEncoding('utf8').on('data', more => {
            const lines = (rest + more).split('\n');
            rest = lines.pop();
            lines.filter(l => l.trim()).forEach(l => this.take(l));
        });
        child.stderr.setEncoding('utf8').on('data', more => {
            this.said = (this.said + more).slice(-STDERR_MAX);
        });
        child.on('error', e => this.ended(child, noSetpriv(e).message));
        child.on('close', (status, signal) => this.ended(
            child, `QEMU has ended (${signal ?? `status ${status}`})`));
    }

    ended(child, how) {
        if (this.child === child) {
            const why = this.said.trim().split('\n')[0]
                .replace(/^\S*qemu-system-\w+: /, '');

            this.child = null;
            for (const { failed } of this.pending.values()) {
                failed(new Refusal(why ? `${how}: ${why}` : how));
            }
            this.pending.clear();
        }
    }

    /* ---- QMP ---- */

    take(line) {
        let message;

        try {
            message = JSON.parse(line);
        } catch {
            this.said = (this.said + `${line}\n`).slice(-STDERR_MAX);
            return;
        }
        if (message.event === 'TT_PROGRESS') {
            this.onProgress?.(message.data.done, message.data.total);
        }
        const key = message.QMP ? 'greeting' : message.id;
        const waiting = this.pending.get(key);

        this.pending.delete(key);
        if (message.error) {
            waiting?.failed(new Refusal(
                message.error.desc.replaceAll('cpu-index', 'cpu')));
        } else {
            waiting?.done(message.QMP ?? message.return);
        }
    }

    ask(command, args) {
        return new Promise((done, failed) => {
            const id = this.nextId++;

            if (!this.child) {
                failed(new Refusal('QEMU has ended'));
                return;
            }
            this.pending.set(id, { done, failed });
            this.child.stdin.write(`${JSON.stringify(
                { execute: command, arguments: args, id })}\n`);
        });
    }

    /* A command of the human monitor, for one vCPU. */
    async monitor(line, cpu) {
        const said = await this.ask('human-monitor-command', {
            'command-line': line, ...(cpu === undefined ? {} : { 'cpu-index': cpu }) });

        return said.replaceAll('\r', '').trimEnd();
    }

    /* ---- movements ---- */

    state() {
        return this.ask('query-tt');
    }

    /* @place: arguments of tt-goto. */
    async goto(place, signal, onProgress) {
        const interrupt = () => this.interrupt();

        this.onProgress = onProgress;
        signal?.addEventListener('abort', interrupt);
        try {
            return await this.ask('tt-goto', place);
        } finally {
            this.onProgress = null;
            signal?.removeEventListener('abort', interrupt);
        }
    }

    /* Out of band: tt-goto holds up all other commands. */
    interrupt() {
        this.child?.stdin.write(`${JSON.stringify({ 'exec-oob': 'tt-interrupt' })}\n`);
    }
}
