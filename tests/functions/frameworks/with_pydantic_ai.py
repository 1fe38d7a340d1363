"""An agent of pydantic-ai with its own `FunctionModel`."""

from typing import Any

from framework_story import Model as Script
from framework_story import Part, tell
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

script = Script()


def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    said = script.turn(f"{info.instructions}\n{messages}", "line 5" in str(messages))
    return ModelResponse([ToolCallPart("look", {"line": 5}, "c1") if said is None else TextPart(said)])


agent = Agent(FunctionModel(answer), instructions="Be brief.")


@agent.tool_plain
def look(line: int) -> str:
    return f"line {line}"


async def arun(wrapped: Any, task: str) -> str:
    return (await wrapped.run(task)).output


refused = ("iter", "run_stream", "run_stream_sync", "run_stream_events", "realtime", "to_cli", "to_cli_sync", "to_web")
tell({"Agent": Part(agent, script, lambda wrapped, task: wrapped.run_sync(task).output, arun, refused, tokens=None)})
