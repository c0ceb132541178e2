/* SPDX-License-Identifier: GPL-2.0-or-later */
/* QEMU's screendump (a PPM file) as PNG, which clients can show. */
import { deflateSync } from 'node:zlib';
import { Refusal } from './child.mjs';

const TABLE = Uint32Array.from({ length: 256 }, (_, n) => {
    for (let bit = 0; bit < 8; bit++) {
        n = n & 1 ? 0xedb88320 ^ (n >>> 1) : n >>> 1;
    }
    return n;
});

function crc(bytes) {
    let sum = 0xffffffff;

    for (const byte of bytes) {
        sum = TABLE[(sum ^ byte) & 255] ^ (sum >>> 8);
    }
    return (sum ^ 0xffffffff) >>> 0;
}

function chunk(type, data) {
    const body = Buffer.concat([Buffer.from(type, 'latin1'), data]);
    const out = Buffer.alloc(body.length + 8);

    out.writeUInt32BE(data.length, 0);
    body.copy(out, 4);
    out.writeUInt32BE(crc(body), body.length + 4);
    return out;
}

export function pngOfPpm(ppm) {
    const begin = ppm.subarray(0, 64).toString('latin1');
    const head = /^P6\s+(\d+)\s+(\d+)\s+255\s/.exec(begin);

    if (!head) {
        throw new Refusal('QEMU made no picture of the screen');
    }
    const [width, height] = [Number(head[1]), Number(head[2])];
    const row = width * 3, rows = Buffer.alloc((row + 1) * height);
    const header = Buffer.alloc(13);

    for (let y = 0; y < height; y++) {  // each row begins with its filter: none
        ppm.copy(rows, y * (row + 1) + 1, head[0].length + y * row,
                 head[0].length + (y + 1) * row);
    }
    header.writeUInt32BE(width, 0);
    header.writeUInt32BE(height, 4);
    header.set([8, 2, 0, 0, 0], 8);     // 8 bits, RGB
    return { width, height, data: Buffer.concat([
        Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]),
        chunk('IHDR', header), chunk('IDAT', deflateSync(rows)),
        chunk('IEND', Buffer.alloc(0))]) };
}
