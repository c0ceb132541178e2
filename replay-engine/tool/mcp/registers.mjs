/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Values of registers, under gdb's names, from what the monitor's "info registers" prints. */
import { Refusal } from './child.mjs';

const WHOLE = (1n << 64n) - 1n;
const LOW = (1n << 32n) - 1n;

export const hex = n => `0x${(n & WHOLE).toString(16)}`;

/* "RSP=0000000000006ff0", "R8 =...", "EIP=...", "CR3=..." */
function whole(said, name) {
    const found = new RegExp(`(?:^|\\s)${name}\\s?=([0-9a-f]{8,16})\\b`, 'm').exec(said);

    return found ? BigInt(`0x${found[1]}`) : null;
}

/* "FS =0000 0000000000000000 ffffffff 00c00000": selector, base, limit, flags */
function base(said, segment) {
    const found = new RegExp(`^${segment} =[0-9a-f]{4} ([0-9a-f]{8,16}) `, 'm').exec(said);

    return found ? BigInt(`0x${found[1]}`) : null;
}

/* @word: "$rsp". In 16 and 32 bits the monitor prints EAX and the like only; $rip and $pc
   are linear, as they are for gdb. */
function valueOf(said, word) {
    const name = word.slice(1).toUpperCase();
    const wide = /^R(AX|BX|CX|DX|SI|DI|BP|SP)$/.exec(name)?.[1];
    const low = /^E(AX|BX|CX|DX|SI|DI|BP|SP)$/.exec(name)?.[1];
    const either = rest => whole(said, `R${rest}`) ?? whole(said, `E${rest}`);

    if (/^(RIP|EIP|PC)$/.test(name)) {
        return whole(said, 'RIP') ?? (whole(said, 'EIP') + base(said, 'CS') & LOW);
    }
    if (/^[FG]S_BASE$/.test(name)) {
        return base(said, name.slice(0, 2));
    }
    if (low) {
        return either(low) & LOW;
    }
    return wide ? either(wide) : /^(R([89]|1[0-5])|CR[0234])$/.test(name) ?
        whole(said, name) : null;
}

export function register(said, word) {
    const value = valueOf(said, word);

    if (value === null) {
        throw new Refusal(`there is no address in '${word}': give a general register ` +
                          '($rsp, $rip, $r8), $fs_base, $gs_base or $cr3');
    }
    return value;
}
