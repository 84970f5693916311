// Has the workspace's daemon judge and record what opencode's own tools do. Written by `orchestrator connect`.
import { spawn } from "node:child_process"

const COMMAND = ["orchestrator", "hook", "opencode"]
const TOOLS = new Set(["read", "edit", "write", "apply_patch", "patch", "bash"])
const WITHIN_MS = 10_000

function ask(event) {
  return new Promise((resolve) => {
    const hook = spawn(COMMAND[0], COMMAND.slice(1), { stdio: ["pipe", "pipe", "pipe"], timeout: WITHIN_MS })
    let out = ""
    let err = ""
    hook.stdout.on("data", (piece) => (out += piece))
    hook.stderr.on("data", (piece) => (err += piece))
    hook.stdin.on("error", () => {})
    hook.on("error", (error) => resolve({ deny: `Denied: the orchestrator's hook cannot be run: ${error.message}` }))
    hook.on("close", (code) => {
      try {
        if (code !== 0) throw new Error(err.trim() || `it ended with ${code}`)
        resolve(out.trim() ? JSON.parse(out) : {})
      } catch (error) {
        resolve({ deny: `Denied: the orchestrator's hook failed: ${error.message}` })
      }
    })
    hook.stdin.end(JSON.stringify(event))
  })
}

export const Orchestrator = async ({ directory }) => {
  const told = (when, input, args) => ({
    event: when,
    session: input.sessionID,
    call: input.callID,
    cwd: directory,
    tool: input.tool,
    args,
  })
  return {
    "tool.execute.before": async (input, output) => {
      if (!TOOLS.has(input.tool)) return
      const answer = await ask(told("before", input, output.args))
      if (answer.deny) throw new Error(answer.deny)
    },
    "tool.execute.after": async (input, output) => {
      if (!TOOLS.has(input.tool)) return
      const display = output?.metadata?.display
      const shown = display ? { start: display.lineStart, end: display.lineEnd } : {}
      const answer = await ask({ ...told("after", input, input.args), shown })
      const text = answer.tell || answer.deny
      if (text && typeof output?.output === "string") output.output += `\n\n${text}`
    },
  }
}
