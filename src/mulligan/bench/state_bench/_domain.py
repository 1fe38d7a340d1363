"""Runs in the sandbox: performs calls with a domain's tools, writes the questions to its customer and its judge, and
scores the final state, all with the code of the user's own checkout of STATE-Bench.

The request on standard input is JSON: "root" (of the checkout), "domain", "task" (its file), "moves", "judge", and
"want" (a method of `TaskRun`). A move is {"calls": [[NAME, ARGUMENTS], ...]} or {"say": TEXT, "answers": [...]}: the
customer's reply, unless the agent has no turn left, then the judge's verdict. The answer is one line of JSON.
"""

import contextlib
import json
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any


class RecordingClient:
    """Replaces their client of a provider: records the question, and returns the given answer."""

    def __init__(self, answer: Any = None) -> None:
        self.answer, self.messages = answer, list[list[str]]()

    def complete_chat(self, messages: list[dict[str, str]], **_: Any) -> str:
        self.messages = [[one["role"], one["content"]] for one in messages]
        return str(self.answer or "")

    def complete_json(self, prompt: str, system_prompt: str, **_: Any) -> Any:
        self.messages = [["system", system_prompt], ["user", prompt]]
        return self.answer or {}


class TaskRun:
    """A task after the moves of a request."""

    def __init__(self, request: dict[str, Any]) -> None:
        client = ModuleType("state_bench.client")  # theirs imports SDKs of providers
        for name in ("BaseLLMClient", "LLMClient", "PooledLLMClient"):
            setattr(client, name, RecordingClient)
        sys.modules["state_bench.client"] = client
        self.domain = import_module("state_bench.domain").get_domain_config(request["domain"])
        schemas = import_module("state_bench.schemas")
        self.task = schemas.TaskDefinition.load(Path(request["task"]))
        self.data, _ = import_module("state_bench.env_loader").load_task_environment(self.domain, self.task)
        world = self.domain.environment_class(self.data.deep_copy(), now=self.task.now)
        before = world.get_full_snapshot()
        self.judged = request["judge"]
        self.conversation: list[dict[str, Any]] = [{"role": "user", "content": self.task.opening_message}]
        self.calls: list[dict[str, Any]] = []
        self.results: list[Any] = []
        self.rest: list[Any] = []
        self.over = self.waits = False
        turns = taken = 0
        for move in request["moves"]:
            self.results = [self._call(world, *call) for call in move.get("calls", ())]
            if "say" in move:
                turns, calls = turns + 1, self.calls[taken:] or None
                taken = len(self.calls)
                self.conversation.append({"role": "assistant", "content": move["say"], "tool_calls": calls})
                self._answer(move.get("answers", []), last=turns >= self.domain.max_agent_turns)
        self.change = schemas.StateDiff.compute(before, world.get_full_snapshot())

    def _call(self, world: Any, name: str, arguments: dict[str, Any] | None) -> Any:
        handler = world.tool_handlers.get(name)
        try:
            if arguments is None:
                result = {"error": f"The arguments of {name} must be named, and plain values."}
            else:
                result = handler(arguments) if handler else {"error": f"Unknown tool: {name}"}
        except Exception as error:
            result = {"error": f"{type(error).__name__}: {error}"}
        self.calls.append({"name": name, "arguments": arguments or {}, "result": result})
        return result

    def _answer(self, answers: list[Any], *, last: bool) -> None:
        self.waits = not last and not answers
        if last or self.waits:
            self.over, self.rest = last, answers
            return
        self.conversation.append({"role": "user", "content": str(answers[0]).strip()})
        self.over, self.rest = bool(self.domain.check_termination(str(answers[0]))), answers[1:]

    def opening(self) -> dict[str, Any]:
        user = self.task.user_id
        return {
            "system": self.domain.agent_system_prompt.format(now=self.task.now, user_id=user),
            "opening": self.task.opening_message,
            "tools": self.domain.tool_schemas,
        }

    def question(self) -> dict[str, Any]:
        """The next question to the customer or the judge."""
        client = RecordingClient()
        if self.waits:
            prompt = self.domain.build_simulator_prompt(self.task, self.data, self.task.user_id)
            import_module("state_bench.simulator").UserSimulator(client, prompt).respond(self.conversation)
        elif self.judged and self.over and not self.rest:
            self._verdict(client)
        return {"messages": client.messages, "json": self.over}

    def step(self) -> dict[str, Any]:
        """The result of the last move."""
        result = {"results": self.results, "over": self.over, "reply": self.conversation[-1]["content"]}
        if self.judged and self.over:
            verdict = self._verdict(RecordingClient(self.rest[0] if self.rest else None))
            result["verdict"] = None if verdict is None else [verdict.score, verdict.reasoning]
        return {**result, **self.score()}

    def score(self) -> dict[str, Any]:
        score = import_module("state_bench.scoring").evaluate_state_requirements(self.task, self.change)
        return {"state": score and score.score, "text": score.reasoning if score else "It has no requirements."}

    def _verdict(self, client: RecordingClient) -> Any:
        judge = import_module("state_bench.scoring").TaskRequirementsJudge(
            client, self.domain.prompts_dir, self.domain.judge_system_prompt
        )
        return judge.evaluate(self.task, self.conversation, self.calls, self.change)


def main() -> None:
    request = json.load(sys.stdin)
    sys.path.insert(0, request["root"])
    with contextlib.redirect_stdout(sys.stderr):
        answer = getattr(TaskRun(request), request["want"])()
    sys.stdout.write(json.dumps(answer, ensure_ascii=False, default=str))


if __name__ == "__main__":
    main()
