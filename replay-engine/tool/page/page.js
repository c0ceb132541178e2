/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The page that tt page makes: charts over positions, and what a click says. All text of
   the run goes in as text, never as markup. */
'use strict';
(() => {
const data = JSON.parse(document.getElementById('data').textContent);
const byId = id => document.getElementById(id);
const COLOURS = ['#1f77b4', '#ff7f0e', '#2ca02c', '#d62728', '#9467bd', '#8c564b',
                 '#e377c2', '#7f7f7f', '#bcbd22', '#17becf'];
const SNAP = 6;                         // pixels
const WIDTH = 1160;
const charts = [];

function element(name, text, parent) {
    const e = document.createElement(name);
    e.textContent = text;
    if (parent) {
        parent.appendChild(e);
    }
    return e;
}

const thousands = n => String(n).replace(/\B(?=(\d{3})+$)/g, ',');

/* In single quotes, for a shell. */
const quoted = s => /^[\w@%+=:,./-]+$/.test(s) ? s : `'${s.replace(/'/g, `'\\''`)}'`;

/* ---- the command ---- */

function show(command, note) {
    byId('command').replaceChildren();
    element('code', command, byId('command')).id = 'text';
    const copy = element('button', 'Copy', byId('command'));
    copy.onclick = () => {
        const range = document.createRange();
        range.selectNodeContents(byId('text'));
        getSelection().removeAllRanges();
        getSelection().addRange(range);
        document.execCommand('copy');
    };
    element('span', ` ${note}`, byId('command')).className = 'hint';
}

const goTo = (pos, what) =>
    show(`tt goto ${pos}`, `${what}; in the monitor of -tt ` +
         `${quoted(`replay,dir=${data.run.replace(/,/g, ',,')}`)} -S -monitor stdio`);

/* The position of a parent is in that. */
const children = data.branches.filter(b => b.kind === 'branch');

/* What a click near to it means. */
const places = [
    ...data.checkpoints.map(c => ({ pos: c.pos, what: `checkpoint ${c.id}` })),
    ...data.marks.map(m => ({ pos: m.pos, what: `mark @${m.name}` })),
    ...children.map(b => ({ pos: b.pos, what: `branch ${b.path}` })),
];

function clicked(u, event) {
    const left = event.clientX - u.over.getBoundingClientRect().left;
    let best = null, distance = SNAP + 1;
    for (const p of places) {
        const d = Math.abs(u.valToPos(Number(p.pos), 'x') - left);
        if (d < distance) {
            best = p;
            distance = d;
        }
    }
    if (best) {
        goTo(best.pos, best.what);
        return;
    }
    const at = Math.round(u.posToVal(left, 'x'));
    goTo(Math.min(Math.max(at, Number(data.start)), Number(data.end)),
         'the place that you clicked');
}

/* ---- charts ---- */

function line(u, pos, colour, from, dash) {
    const x = Math.round(u.valToPos(Number(pos), 'x', true));
    if (x < u.bbox.left || x > u.bbox.left + u.bbox.width) {
        return;
    }
    u.ctx.strokeStyle = colour;
    u.ctx.setLineDash(dash);
    u.ctx.beginPath();
    u.ctx.moveTo(x, u.bbox.top + u.bbox.height * from);
    u.ctx.lineTo(x, u.bbox.top + u.bbox.height);
    u.ctx.stroke();
}

function drawPlaces(u) {
    u.ctx.save();
    u.ctx.lineWidth = 1;
    data.checkpoints.forEach(c => line(u, c.pos, c.full ? '#080' : '#9c9', 0.93, []));
    children.forEach(b => line(u, b.pos, '#b0b', 0.5, [2, 2]));
    data.marks.forEach(m => line(u, m.pos, '#c60', 0, [4, 3]));
    u.ctx.restore();
}

/* Zooming one zooms all. */
let zooming = false;
function zoomed(u, scale) {
    if (scale !== 'x' || zooming) {
        return;
    }
    zooming = true;
    for (const other of charts) {
        if (other !== u) {
            other.setScale('x', { min: u.scales.x.min, max: u.scales.x.max });
        }
    }
    zooming = false;
}

const short = (u, values) => values.map(v => v === null ? '' :
    Math.abs(v) >= 1e12 ? `${v / 1e12}T` : Math.abs(v) >= 1e9 ? `${v / 1e9}G` :
    Math.abs(v) >= 1e6 ? `${v / 1e6}M` : Math.abs(v) >= 1e3 ? `${v / 1e3}k` : `${v}`);

function chart(id, height, x, series, steep) {
    const u = new uPlot({
        width: WIDTH, height, cursor: { sync: { key: 'tt' }, drag: { x: true, y: false } },
        scales: {
            x: { time: false, range: (self, min, max) => [min, Math.max(max, min + 1)] },
            y: { distr: steep ? 4 : 1, asinh: 1 },      /* 4: logarithmic, with a zero */
        },
        axes: [{ values: short }, { size: 70, values: short }],
        series: [{ label: 'position' }, ...series.map((s, i) => ({
            label: s.name, stroke: COLOURS[i % COLOURS.length], width: 1,
            points: { show: false }, show: s.show !== false,
        }))],
        hooks: { draw: [drawPlaces], setScale: [zoomed] },
    }, [x, ...series.map(s => s.values)], byId(id));
    let down = 0;
    u.over.addEventListener('mousedown', e => { down = e.clientX; });
    u.over.addEventListener('click', e => {
        if (Math.abs(e.clientX - down) < 3) {       // no drag, which zooms
            clicked(u, e);
        }
    });
    charts.push(u);
}

/* ---- lists ---- */

function rows(id, list, heads, cells, act) {
    if (!list.length) {
        byId(id).previousElementSibling.remove();
        byId(id).remove();
        return;
    }
    const table = element('table', '', byId(id));
    const head = element('tr', '', table);
    heads.forEach(h => element('th', h, head));
    for (const item of list) {
        const row = element('tr', '', table);
        for (const c of cells(item)) {
            element('td', c, row).className = /^[\d,.]+$/.test(c) ? 'n' : '';
        }
        row.onclick = () => act(item);
    }
}

/* ---- the screen ---- */

function shots() {
    const all = byId('shots');
    if (!data.shots.length && !data.shotsNote) {
        all.previousElementSibling.remove();
        all.remove();
        return;
    }
    if (data.shotsNote) {
        element('p', data.shotsNote, all);
    }
    for (const shot of data.shots) {
        const figure = element('figure', '', all);
        const image = element('img', '', figure);
        const picture = data.shots[shot.as];
        image.src = `data:image/png;base64,${picture.png}`;
        image.alt = `the screen at position ${shot.pos}`;
        element('figcaption', `${thousands(shot.pos)}${picture === shot ? '' :
            ' (unchanged)'}`, figure);
        figure.onclick = () => {
            figure.classList.toggle('large');
            goTo(shot.pos, `${picture.width} x ${picture.height} pixels`);
        };
    }
}

function lists() {
    rows('checkpoints', data.checkpoints, ['id', 'position', 'seconds', ''],
         c => [String(c.id), thousands(c.pos), (c.ns / 1e9).toFixed(1),
               c.full ? 'full' : c.pinned ? 'kept' : ''],
         c => c.full ? show(`tt branch ${quoted(data.run)} --at ${c.id}`,
                            `goes on from there; to look: tt goto ${c.pos}`)
                     : goTo(c.pos, `checkpoint ${c.id}`));
    rows('marks', data.marks, ['name', 'position'], m => [m.name, thousands(m.pos)],
         m => goTo(m.pos, `mark @${m.name}`));
    rows('branches', data.branches, ['', 'run', 'checkpoint', 'position'],
         b => [b.kind, b.path, String(b.checkpoint), thousands(b.pos)],
         b => show(`tt info ${quoted(b.path)}`, `${b.kind}, at position ${b.pos}`));
    rows('console', data.console, ['position', ''], l => [thousands(l.pos), l.text],
         l => goTo(l.pos, 'where this line began'));
}

function facts() {
    byId('run').textContent = data.run;
    byId('facts').textContent =
        `${data.started}, about ${(data.ns / 1e9).toFixed(1)} s, positions ` +
        `${thousands(data.start)} to ${thousands(data.end)}, ${thousands(data.events)} ` +
        `events, ${thousands(data.bytes)} bytes of log. ${data.command}`;
    byId('damage').textContent = data.damage;
}

facts();
/* Of times the log has those at which its segments begin; a short one has one. */
chart('time', 150, [...data.time.pos, Number(data.end)],
      [{ name: 'seconds', values: [...data.time.s, data.ns / 1e9] }]);
chart('events', 260, data.bins, data.kinds.map((k, i) =>
    ({ name: k.name, values: k.counts, show: i < COLOURS.length })), true);
chart('rates', 200, data.bins, [
    { name: 'port and MMIO accesses', values: data.io },
    { name: 'bytes that devices wrote to RAM', values: data.dma },
    { name: 'bytes of log', values: data.log }], true);
shots();
lists();
document.body.dataset.ready = 'yes';
})();
