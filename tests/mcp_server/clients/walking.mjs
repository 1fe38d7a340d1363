// What every walker does with a client that is connected: look at all there is, then make the calls of the plan.
//
// A plan (JSON on standard input): {transport: stdio | sse | http, command, args, env, url, headers, era, steps}, with
// steps {tool, arguments}. In arguments a text "{name}" stands for the newest `name` of any structured content.
// The report goes to standard output as one JSON object. A step whose call throws has `thrown`: what the SDK's client
// says, such as that structured content does not fit the declared output schema.

import { readFileSync } from "node:fs";

const PATIENCE = 60_000; // milliseconds for one answer

export function plan() {
  return JSON.parse(readFileSync(0, "utf8"));
}

export async function walk(client, steps, call) {
  const about = {
    server: client.getServerVersion() ?? null,
    capabilities: client.getServerCapabilities() ?? {},
    instructions: client.getInstructions() ?? null,
  };
  const tools = (await client.listTools()).tools;
  const seen = {};
  const results = [];
  for (const step of steps) {
    const told = [];
    try {
      const asked = { name: step.tool, arguments: filled(step.arguments, seen) };
      const options = { timeout: PATIENCE, onprogress: (progress) => told.push(progress) };
      const { content, structuredContent, isError } = await call(asked, options);
      Object.assign(seen, structuredContent ?? {});
      results.push({ content, structuredContent: structuredContent ?? null, isError: isError ?? false, told });
    } catch (error) {
      results.push({ thrown: String(error), told });
    }
  }
  return { ...about, tools, results, ...(await others(client, about.capabilities)) };
}

async function others(client, { resources, prompts }) {
  const found = { resources: [], templates: [], read: null, prompts: [] };
  if (resources) {
    found.resources = (await client.listResources()).resources;
    found.templates = (await client.listResourceTemplates()).resourceTemplates;
    if (found.resources.length > 0) {
      found.read = (await client.readResource({ uri: found.resources[0].uri })).contents;
    }
  }
  if (prompts) {
    found.prompts = (await client.listPrompts()).prompts;
  }
  return found;
}

function filled(value, seen) {
  if (typeof value === "string") {
    const name = /^\{(\w+)\}$/.exec(value)?.[1];
    return name !== undefined && name in seen ? seen[name] : value;
  }
  if (Array.isArray(value)) {
    return value.map((one) => filled(one, seen));
  }
  if (value !== null && typeof value === "object") {
    return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, filled(one, seen)]));
  }
  return value;
}
