/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A client of MCP, by the protocol's own SDK: node mcp_client.mjs SDK COMMAND ARGUMENT...
   Each line on stdin is a request, {"method": ..., "params": ...} or {"tool": ...,
   "arguments": ..., "cancel": true}; each answer is a line on stdout. */
import { createInterface } from 'node:readline';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const [sdk, command, ...args] = process.argv.slice(2);
const load = name => import(pathToFileURL(join(sdk, 'dist/esm/client', name)));
const { Client } = await load('index.js');
const { StdioClientTransport } = await load('stdio.js');

const say = what => process.stdout.write(`${JSON.stringify(what)}\n`);
const client = new Client({ name: 'test', version: '1' });
const transport = new StdioClientTransport({ command, args, stderr: 'inherit' });

async function ask(request) {
    if (!request.tool) {
        return client[request.method](request.params);
    }
    let heard = 0;
    const cut = new AbortController();
    const options = {
        timeout: 600000, resetTimeoutOnProgress: true, signal: cut.signal,
        onprogress: () => {
            heard++;
            if (request.cancel) {
                cut.abort('enough');
            }
        } };
    const result = await client.callTool(
        { name: request.tool, arguments: request.arguments ?? {} }, undefined, options);

    return { ...result, heard };
}

try {
    await client.connect(transport);
    say({ server: client.getServerVersion(), instructions: client.getInstructions(),
          pid: transport.pid });
    for await (const line of createInterface({ input: process.stdin })) {
        try {
            say(await ask(JSON.parse(line)));
        } catch (error) {
            say({ error: String(error.message ?? error) });
        }
    }
    await client.close();
} catch (error) {
    say({ error: String(error.message ?? error) });
}
