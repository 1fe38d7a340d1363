// The TypeScript SDK's client of the second major version (@modelcontextprotocol/client), in any era of the protocol.

import { Client, SSEClientTransport, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";

import { plan, walk } from "./walking.mjs";

const { transport, command, args, env, url, headers = {}, era = "auto", steps } = plan();
const options = { requestInit: { headers } };
const transports = {
  stdio: () => new StdioClientTransport({ command, args, env, stderr: "inherit" }),
  sse: () => new SSEClientTransport(new URL(url), options),
  http: () => new StreamableHTTPClientTransport(new URL(url), options),
};

const client = new Client({ name: "walker", version: "2" }, { versionNegotiation: { mode: era } });
const chosen = transports[transport]();
await client.connect(chosen);
const report = await walk(client, steps, (asked, more) => client.callTool(asked, more));
report.revision = client.getNegotiatedProtocolVersion() ?? null;
report.session = chosen.sessionId ?? null;
await client.close();
console.log(JSON.stringify(report));
