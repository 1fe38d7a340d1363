// The TypeScript SDK's client of the first major version (@modelcontextprotocol/sdk), over any of the transports.

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { SSEClientTransport } from "@modelcontextprotocol/sdk/client/sse.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

import { plan, walk } from "./walking.mjs";

const { transport, command, args, env, url, headers = {}, steps } = plan();
const options = { requestInit: { headers } };
const transports = {
  stdio: () => new StdioClientTransport({ command, args, env, stderr: "inherit" }),
  sse: () => new SSEClientTransport(new URL(url), options),
  http: () => new StreamableHTTPClientTransport(new URL(url), options),
};

const client = new Client({ name: "walker", version: "1" });
const chosen = transports[transport]();
const revision = agreed(chosen);
await client.connect(chosen);
const report = await walk(client, steps, (asked, more) => client.callTool(asked, undefined, more));
report.revision = revision();
report.session = chosen.sessionId ?? null;
if (transport === "http") {
  await chosen.terminateSession();
}
await client.close();
console.log(JSON.stringify(report));

// The client tells the transport what was agreed on, and nobody else.
function agreed(transport) {
  let version = null;
  const told = transport.setProtocolVersion?.bind(transport);
  transport.setProtocolVersion = (said) => {
    version = said;
    told?.(said);
  };
  return () => version;
}
