"""One step of an agent: a single answer (oneshot), or thinking and calling tools until `finish` (react).

This is ReAct (Yao et al. 2023) with real tool calls. An actor, an evaluator or a reflector performs a step within one
move of the episode.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, Literal, NamedTuple, cast

from mulligan.core.errors import BadAnswer, InvalidInput, ToolError, UnknownName
from mulligan.core.loops import LoopDetector
from mulligan.core.protocols import Journal, Model, Toolbox, ToolResult
from mulligan.core.questions import Message, Question, Sampling, Tool, ToolCall, object_schema
from mulligan.core.records import Image, Json, Spec, Step
from mulligan.models.json_answers import recordable
from mulligan.text.formatting import observed_text, refusal_text

MAX_RESULT_CHARACTERS = 12_000  # of a tool's result that the model sees

MAX_CALLS = 50  # that are made for one answer: `max_iter` counts answers, and one answer can have thousands of calls

_CALL = re.compile(r"([A-Za-z0-9_-]{1,64})\((.*)\)", re.DOTALL)
_ARGUMENT = re.compile(r"([^\s=,\"']+)\s*=\s*")
_COMMA = re.compile(r"\s*,\s*")
_DECODER = json.JSONDecoder(strict=False)

READ = "read_skill"  # the tool that shows a skill's text and unlocks the tools that it names

MAX_FILES = 50  # of a skill that are listed below its text


@dataclass(frozen=True)
class Skill:
    """Instructions that an agent can read: the description is always shown, the body on request.

    Reading it unlocks its `tools`, and lets the skills that it `uses` and the files in its `folder` be read.
    """

    name: str
    description: str
    body: str
    tools: tuple[str, ...] = ()
    uses: tuple[str, ...] = ()
    folder: str = ""


@dataclass(frozen=True)
class StepFile:
    """The content of a step's file: the system prompt and how the step is performed.

    Attributes:
        max_iter: maximum number of model calls in a react step.
        uses: the names of the skills that can be read from the start.
        skills: all skills that can become readable, by name.
        tools: the tools that can be called from the start, named as in a skill.
    """

    instructions: str
    pattern: Literal["react", "oneshot"] = "oneshot"
    temperature: float | None = None
    max_tokens: int | None = None
    max_iter: int = 10
    uses: tuple[str, ...] = ()
    skills: Mapping[str, Skill] = field(default_factory=dict[str, Skill])
    tools: tuple[str, ...] = ()

    @classmethod
    def parse(cls, table: Mapping[str, Any]) -> StepFile:
        """Reads a recorded setting. Raises `InvalidInput` for an unknown key or a wrong value."""
        known = [field.name for field in fields(cls)]
        for key in table:
            if key not in known:
                raise UnknownName("key of a step", key, known)
        if not isinstance(table.get("instructions"), str) or table.get("pattern", "oneshot") not in (
            "react",
            "oneshot",
        ):
            raise InvalidInput("A step needs instructions, and the pattern react or oneshot.")
        values = _tuples(table)
        values["skills"] = {name: Skill(**_tuples(skill)) for name, skill in table.get("skills", {}).items()}
        return cls(**values)

    def to_json(self) -> Json:
        """The form in a recipe; `parse` reads it."""
        return json.loads(json.dumps(asdict(self)))


@dataclass(frozen=True)
class Performed:
    """The result of a step.

    Attributes:
        text: the result; if the step was halted, the last text of the model.
        key: the key of `finish`; None if the step ended with plain text.
        halted: why the step ended before its result.
    """

    text: str
    key: str | None = None
    steps: tuple[Step, ...] = ()
    halted: str | None = None


FINISH = Tool(
    "finish",
    "Hand in the result and end this step.",
    object_schema(
        key={
            "type": "string",
            "description": 'How it ended: "done", or another word that the instructions name.',
        },
        value={"type": "string", "description": "The result itself, complete."},
    ),
)


def question_of(step: StepFile, text: str, images: tuple[Image, ...] = ()) -> Question:
    """The question of a oneshot step."""
    return Question((Message("system", step.instructions.strip()), Message("user", text, images)))


async def perform(
    step: StepFile,
    text: str,
    model: Model,
    journal: Journal,
    toolbox: Toolbox,
    seed: int,
    images: tuple[Image, ...] = (),
) -> Performed:
    """Performs the step on this text. Tool calls are journal steps `tool.<name>`.

    Errors of tools and mistakes of the model are reported to the model. Raises what the model and the journal raise.
    """
    sampling = Sampling(step.temperature, step.max_tokens, seed)
    if step.pattern == "oneshot":
        answer = await model.ask(question_of(step, text, images), sampling)
        return Performed(str(answer.content).strip())
    return await _React(step, Message("user", text, images), model, journal, toolbox, sampling).run()


class _React:
    """One running react step."""

    def __init__(
        self, step: StepFile, task: Message, model: Model, journal: Journal, toolbox: Toolbox, sampling: Sampling
    ) -> None:
        self._step, self._model, self._journal, self._toolbox = step, model, journal, toolbox
        self._sampling = sampling
        self._messages = [Message("system", _system(step)), task]
        self._tools: dict[str, tuple[str, Tool]] = {}  # by the tool's name: its source and the tool
        self._readable = list(step.uses)
        self._steps: list[Step] = []
        self._circles = LoopDetector()
        self._warned = False

    async def run(self) -> Performed:
        last_text = ""
        if self._step.tools:
            unlocked = await self._unlock("", self._step.tools)
            if unlocked.error:
                self._nudge(_error(unlocked.error))
        for _ in range(self._step.max_iter):
            try:
                answer = await self._model.ask(Question(tuple(self._messages), tools=self._offered()), self._sampling)
            except BadAnswer as error:
                self._nudge(f"[error: {error} Call a tool, or finish.]")
                continue
            text = str(answer.content or "").strip()
            last_text = text or last_text
            if not answer.calls and text:
                return Performed(text, None, tuple(self._steps))
            if not answer.calls:
                self._nudge("[error: nothing came. Call a tool, or finish with the result.]")
                continue
            self._messages.append(Message("assistant", text, calls=answer.calls))
            for number, call in enumerate(answer.calls):
                thought = "" if number else text
                if performed := self._finished(call, thought):
                    return performed
                if number < MAX_CALLS:
                    step = replace(await self._perform_call(call), thought=thought)
                else:
                    step = Step(thought, shown(call), _error(f"only {MAX_CALLS} calls of one answer are made"))
                self._messages.append(Message("tool", observed_text(step)))
                self._steps.append(step)
            if why := self._stop_for_circling(answer.calls):
                return Performed(last_text, None, tuple(self._steps), why)
        why = f"the step limit of {self._step.max_iter} was reached without a call of finish"
        return Performed(last_text, None, tuple(self._steps), why)

    def _nudge(self, text: str) -> None:
        """Tells the model what it did wrong."""
        self._messages.append(Message("user", text))
        self._steps.append(Step(observation=text))

    def _offered(self) -> tuple[Tool, ...]:
        reading = (_read_skill(self._readable),) if self._readable else ()
        return (FINISH, *reading, *(tool for _, tool in self._tools.values()))

    def _finished(self, call: ToolCall, thought: str) -> Performed | None:
        """The result, if this call is a complete `finish`."""
        arguments = _object(call)
        if call.name != FINISH.name or arguments is None or "key" not in arguments or "value" not in arguments:
            return None
        key, value = _as_text(arguments["key"]), _as_text(arguments["value"])
        return Performed(value, key, (*self._steps, Step(thought, f"finish(key={key!r})")))

    async def _perform_call(self, call: ToolCall) -> Step:
        """Makes the call, or the one that a check puts in its place, and returns the step."""
        check = None
        if call.name in self._tools and _object(call) is not None:
            tools = [tool for _, tool in self._tools.values()]
            check = await self._toolbox.check(shown(call), self._tools[call.name][1], tools, self._steps)
        if check is not None and not check.performed:
            return Step(action=shown(call), observation=f"[{refusal_text(check)}]", check=check)
        if check is not None and check.change:
            call = call_of(check.change)
        return Step(action=shown(call), observation=await self._result(call), check=check)

    async def _result(self, call: ToolCall) -> str:
        """Makes the call, and returns the text of its result, shortened for the model."""
        arguments = _object(call)
        if arguments is None:
            return _error(f"the arguments of {call.name} must be a JSON object")
        if call.name == FINISH.name:
            return _error("finish needs key and value, both texts")
        if call.name == READ:
            path = arguments.get("path")
            return await self._read(str(arguments.get("name", "")), str(path) if path else "")
        if call.name not in self._tools:
            names = ", ".join(tool.name for tool in self._offered())
            return _error(f"there is no tool {call.name!r} here; there are {names}")
        source, tool = self._tools[call.name]

        async def do() -> Json:
            return asdict(await self._toolbox.call(source, call.name, arguments))

        request = {"tool": source, "arguments": arguments}
        row = await self._journal.step(f"tool.{call.name}", request, do, repeatable=tool.repeatable)
        result = ToolResult(**row)
        self._toolbox.saw(result)
        return _cut(_error(result.text) if result.failed else result.text)

    async def _read(self, name: str, path: str) -> str:
        if name not in self._readable:
            return _error(f"there is no skill {name!r} here; there are {', '.join(self._readable) or 'none'}")
        skill = self._step.skills[name]
        if path:
            return await self._read_file(skill, path)
        unlocked = await self._unlock(name, skill.tools)
        if unlocked.error:
            return _error(unlocked.error)
        new_skills = [other for other in skill.uses if other not in self._readable]
        self._readable += new_skills
        parts = [skill.body.strip()]
        if unlocked.tools:
            parts.append(f"Tools that you can call now: {', '.join(unlocked.tools)}")
        if unlocked.refused:
            parts.append(f"Not to be had, because another tool has the name: {', '.join(unlocked.refused)}")
        if new_skills:
            parts.append(f"Skills that you can read now:\n{_listed(new_skills, self._step.skills)}")
        if skill.folder and (files := await asyncio.to_thread(skill_files, skill.folder)):
            more = f" and {len(files) - MAX_FILES} more" if len(files) > MAX_FILES else ""
            listed = ", ".join(files[:MAX_FILES])
            parts.append(f"Files in {skill.folder}; read one with {READ}(name, path): {listed}{more}")
        return "\n\n".join(parts)

    async def _unlock(self, skill: str, sources: Sequence[str]) -> _Unlocked:
        """Offers the tools of these sources from now on."""

        async def do() -> Json:
            offers: dict[str, Json] = {}
            try:
                for source in sources:
                    offers[source] = [asdict(tool) for tool in await self._toolbox.offer(source)]
            except ToolError as error:
                return {"failed": str(error), "offers": {}}
            return {"failed": "", "offers": offers}

        row = await self._journal.step(f"tool.{READ}", {"name": skill, "tools": list(sources)}, do)
        unlocked = _Unlocked(row["failed"], [], [])
        for source, tools in cast(dict[str, list[dict[str, Any]]], row["offers"]).items():
            for tool in (Tool(**table) for table in tools):
                is_reserved = tool.name in (FINISH.name, READ)
                owner = "" if is_reserved else self._tools.setdefault(tool.name, (source, tool))[0]
                (unlocked.tools if owner == source else unlocked.refused).append(tool.name)
        return unlocked

    async def _read_file(self, skill: Skill, path: str) -> str:
        async def do() -> Json:
            return await asyncio.to_thread(skill_file, skill.folder, path)

        request = {"name": skill.name, "path": path}
        return _cut(await self._journal.step(f"tool.{READ}", request, do, repeatable=True))

    def _stop_for_circling(self, calls: Sequence[ToolCall]) -> str | None:
        """Why to stop if the model goes in circles a second time. The first time, it gets a note."""
        why = None
        for call in calls:
            why = self._circles.add(shown(call)) or why
        if why is None:
            return None
        if self._warned:
            return f"it went in circles: {why}"
        self._warned = True
        self._circles.reset()
        last = self._messages[-1]
        text = f"{last.text}\n\n[note: {why} Do something else, or finish.]"
        self._messages[-1] = replace(last, text=text)
        self._steps[-1] = replace(self._steps[-1], observation=text)
        return None


class _Unlocked(NamedTuple):
    """The result of unlocking tools.

    Attributes:
        error: why none can be offered.
        tools: the names of the tools that can be called now.
        refused: names that another tool already has.
    """

    error: str
    tools: list[str]
    refused: list[str]


def shown(call: ToolCall) -> str:
    """A call in the form of a trajectory's action."""
    arguments = _object(call)
    if arguments is None:
        return f"{call.name}({call.arguments})"
    texts = (f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in arguments.items())
    return f"{call.name}({', '.join(texts)})"


def call_of(text: str) -> ToolCall:
    """The call in a text of the form that `shown` writes. Raises `BadAnswer`, which says what is wrong."""
    call = _CALL.fullmatch(text.strip())
    if call is None:
        raise BadAnswer('A call has the form tool(name="value", other=2).')
    written, position, arguments = call[2].strip(), 0, dict[str, Json]()
    try:
        while position < len(written):
            name = _ARGUMENT.match(written, position)
            if name is None or name[1] in arguments:
                raise BadAnswer(
                    'Each argument of a call must have a name, used only once: tool(name="value", other=2).'
                )
            value, position = _DECODER.raw_decode(written, name.end())
            arguments[name[1]] = recordable(value)
            comma = _COMMA.match(written, position)
            if comma is None and position < len(written):
                raise ValueError
            position = comma.end() if comma else position
    except (ValueError, RecursionError):
        raise BadAnswer("The arguments of a call must be JSON: strings in double quotes, numbers, lists.") from None
    return ToolCall(call[1], arguments)


def _system(step: StepFile) -> str:
    text = step.instructions.strip()
    if not step.uses:
        return text
    skills = _listed(step.uses, step.skills)
    return f"{text}\n\nAvailable skills. Read one with {READ}(name) before you need what it says:\n{skills}"


def _listed(names: Sequence[str], skills: Mapping[str, Skill]) -> str:
    return "\n".join(f"- {name}: {skills[name].description}" for name in names)


def _read_skill(names: Sequence[str]) -> Tool:
    path = {"type": "string", "description": "A file of the skill, as listed below its text; left out: its text."}
    schema = object_schema(name={"type": "string", "enum": list(names)}, path=path) | {"required": ["name"]}
    return Tool(READ, "Read a skill. What it says may unlock further tools.", schema, repeatable=True)


def skill_folders_of(role: Spec) -> tuple[str, ...]:
    """The folders of the skills of a recorded step, so that its commands may read them."""
    step: Any = role.settings.get("step") or {}
    return tuple(skill["folder"] for skill in step.get("skills", {}).values() if skill.get("folder"))


def skill_files(folder: str) -> list[str]:
    """The paths of the files of a skill in its folder, in alphabetical order."""
    paths: list[str] = []
    for parent, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        paths += (os.path.relpath(os.path.join(parent, name), folder) for name in names if not name.startswith("."))
        if len(paths) > 20 * MAX_FILES:
            break
    return sorted(path for path in paths if path != "SKILL.md")


def skill_file(folder: str, path: str) -> str:
    """The text of a file in a skill's folder, or an error; links cannot lead out of the folder."""
    root = os.path.realpath(folder)
    try:
        real = os.path.realpath(os.path.join(root, path))
        if not folder or os.path.commonpath((root, real)) != root or not os.path.isfile(real):
            return _error(f"the skill has no file {path!r}")
        longest = 4 * MAX_RESULT_CHARACTERS
        with open(real, "rb") as file:
            data = file.read(longest)
        return data.decode("utf-8", "strict" if len(data) < longest else "ignore")
    except (OSError, ValueError) as error:  # it is not text, the path has a zero byte, or reading is not permitted
        return _error(f"{path!r} cannot be read as text: {error}")


def _object(call: ToolCall) -> dict[str, Json] | None:
    arguments: object = call.arguments
    return cast(dict[str, Json], arguments) if isinstance(arguments, dict) else None


def _as_text(value: Json) -> str:
    return (value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)).strip()


def _error(text: str) -> str:
    return f"[error: {text.strip().rstrip('.')}]"


def _cut(text: str) -> str:
    """The text, cut to `MAX_RESULT_CHARACTERS` with a note about the rest."""
    excess = len(text) - MAX_RESULT_CHARACTERS
    return text if excess <= 0 else f"{text[:MAX_RESULT_CHARACTERS]}\n[cut: {excess:,} more characters]"


def _tuples(table: Mapping[str, Any]) -> dict[str, Any]:
    return {key: tuple(cast(list[Any], value)) if isinstance(value, list) else value for key, value in table.items()}
