// Mulligan's plug-in for opencode: what failed here and was overcome is shown when it fails again.
// `mulligan hooks install opencode` writes this file, and `mulligan hooks uninstall opencode` removes it.
// opencode waits for its plug-ins and takes their errors for its own, so nothing here throws or takes longer than LIMIT.
import { spawn, spawnSync } from "node:child_process"
import { homedir } from "node:os"
import { join } from "node:path"

const PROGRAM = ["mulligan-hook"]
const LIMIT = 2000 // milliseconds
const DATA = process.env.XDG_DATA_HOME || join(homedir(), ".local", "share")
const ON_BUS = ["session.created", "session.compacted", "session.idle"]

function asked(payload) {
  return new Promise((resolve) => {
    let said = ""
    const [program, ...words] = PROGRAM
    const child = spawn(program, [...words, "opencode", payload.event], { stdio: ["pipe", "pipe", "ignore"] })
    const timer = setTimeout(() => {
      child.kill("SIGKILL")
      resolve({})
    }, LIMIT)
    const end = () => {
      clearTimeout(timer)
      try {
        resolve(JSON.parse(said))
      } catch {
        resolve({})
      }
    }
    child.on("error", end)
    child.on("close", end)
    child.stdout.on("data", (piece) => (said += piece))
    child.stdin.on("error", () => {})
    child.stdin.end(JSON.stringify(payload))
  })
}

// At the end opencode waits for nothing, so the program is waited for here; what takes longer it starts on its own.
function noted(payload) {
  const [program, ...words] = PROGRAM
  const options = { input: JSON.stringify(payload), timeout: LIMIT, killSignal: "SIGKILL", stdio: ["pipe", "ignore", "ignore"] }
  spawnSync(program, [...words, "opencode", payload.event], options)
}

export const Mulligan = async ({ directory }) => {
  let session = ""
  const greetings = new Map()
  const payload = (event, input, output) => ({
    event,
    directory,
    session,
    transcript: join(DATA, "opencode", "opencode.db"),
    input,
    output,
  })
  const safely = (work) => async (...given) => {
    try {
      return await work(...given)
    } catch {
      return undefined
    }
  }
  return {
    event: safely(async ({ event }) => {
      if (!ON_BUS.includes(event.type)) return
      session = event.properties.sessionID || event.properties.info?.id || session
      const told = payload(event.type, event.properties)
      if (event.type === "session.created") greetings.set(session, asked(told))
      else noted(told)
    }),
    "chat.message": safely(async (input, output) => {
      session = input.sessionID
      const given = { parts: output.parts.map(({ type, text, synthetic }) => ({ type, text, synthetic })) }
      const answers = [await greetings.get(session), await asked(payload("chat.message", input, given))]
      greetings.delete(session)
      const text = answers.map((answer) => answer?.text).filter(Boolean).join("\n\n")
      if (!text) return
      const id = `prt_${Date.now().toString(16)}${Math.random().toString(16).slice(2, 14)}`
      output.parts.push({ id, sessionID: session, messageID: output.message.id, type: "text", text, synthetic: true })
    }),
    "tool.execute.before": async (input, output) => {
      if (input.tool !== "bash") return
      const answer = await safely(() => asked(payload("tool.execute.before", input, output)))()
      if (answer?.deny) throw new Error(answer.deny)
    },
    "tool.execute.after": safely(async (input, output) => {
      if (input.tool !== "bash" || !output.metadata?.exit) return
      const answer = await asked(payload("tool.execute.after", input, output))
      if (answer?.text) output.output += `\n\n${answer.text}`
    }),
    dispose: safely(async () => {
      if (session) noted(payload("dispose", {}))
    }),
  }
}
