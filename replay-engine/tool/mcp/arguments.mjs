/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a client may give: places in the run, addresses, and what is wrong with them. */
import { z } from 'zod';
import { Refusal } from './child.mjs';

export const place = z.union([z.string(), z.number()]).describe(
    'A position (a number), +N or -N from here, start, end, or @MARK');
export const at = place.optional().describe(
    'Go there first; without it the answer is about where the replay stands. A ' +
    'position (a number), +N or -N from here, start, end, or @MARK');
export const cpu = z.number().int().min(0).max(7).optional().describe(
    'vCPU; default: the one whose turn it is there');
export const address = z.union([z.string(), z.number()]).describe(
    'A number (0x...), a register with or without an offset ($rsp, $rip+16), or a name ' +
    'of the file that --symbols gave, with or without an offset (jiffies, table+8)');

/* One that a tool does not know is refused: it would be left out without a word. */
export function parametersOf(tool, shape) {
    const names = Object.keys(shape).map(name => `'${name}'`);
    const known = names.length ? `it has ${names.join(', ')}` : 'it has none';

    return z.strictObject(shape, { error: issue => issue.code === 'unrecognized_keys' ?
        `${tool} has no parameter '${shown(issue.keys[0])}': ${known}` : undefined });
}

/* In a sentence: short, and on one line. */
const shown = word => word.slice(0, 80).replace(/[^ -~]/g, '?');

/* The arguments of tt-goto. */
export function parsePlace(text) {
    const word = String(text).trim();
    const number = /^([+-]?)(\d+)$/.exec(word);

    if (word === 'start' || word === 'end') {
        return { where: word };
    }
    if (/^@./.test(word)) {
        return { mark: word.slice(1) };
    }
    if (!number || Number(number[2]) > Number.MAX_SAFE_INTEGER) {
        throw new Refusal(`'${shown(word)}' is not a place in the run: give a ` +
                          'position (a number), +N, -N, start, end or @MARK');
    }
    return number[1] ? { delta: Number(word) } : { position: Number(word) };
}

/* Of options of tt, which take a position only. */
export function parsePosition(text, name) {
    const word = String(text).trim();

    if (!/^\d{1,19}$/.test(word)) {
        throw new Refusal(`${name} is a position of the run, a number, not ` +
                          `'${shown(word)}'`);
    }
    return word;
}

/* { base, offset }: @base is a number, a register or a name. */
export function parseAddress(text) {
    if (typeof text === 'number' && !Number.isSafeInteger(text)) {
        throw new Refusal('a number this large is not exact in JSON: give the address as a ' +
                          'string, "0x..."');
    }
    const word = String(text).trim();
    const number = '0x[0-9a-f]{1,16}|\\d{1,20}';
    const parts = new RegExp(`^(\\$\\w+|${number}|[a-z_][\\w.]*)` +
                             `(?:\\s*([+-])\\s*(${number}))?$`, 'i').exec(word);

    if (!parts) {
        throw new Refusal(`'${shown(word)}' is not an address: give a number, a ` +
                          'register or a name, with +N or -N if you like');
    }
    return { base: parts[1], sign: parts[2] ?? '', offset: parts[3] ?? '' };
}
