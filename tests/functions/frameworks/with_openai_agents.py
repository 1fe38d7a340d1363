"""An agent of openai-agents with a scripted model."""

from typing import Any

from framework_story import Model as Script
from framework_story import Part, tell
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

from agents import Agent, Model, ModelResponse, Runner, Usage, function_tool


class Scripted(Model):
    def __init__(self) -> None:
        self.script = Script()

    async def get_response(self, system_instructions: str | None, input: Any, *_: Any, **__: Any) -> ModelResponse:
        said = self.script.turn(f"{system_instructions}\n{input}", "function_call_output" in str(input))
        if said is None:
            call = {"arguments": '{"line":5}', "call_id": f"c{len(self.script.asked)}", "name": "look"}
            output: Any = ResponseFunctionToolCall(type="function_call", **call)
        else:
            text = ResponseOutputText(annotations=[], text=said, type="output_text")
            output = ResponseOutputMessage(
                id="m1", content=[text], role="assistant", status="completed", type="message"
            )
        usage = Usage(requests=1, input_tokens=7, output_tokens=2, total_tokens=9)
        return ModelResponse(output=[output], usage=usage, response_id=None)

    def stream_response(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError


@function_tool
def look(line: int) -> str:
    """Look at a line."""
    return f"line {line}"


model = Scripted()
agent = Agent("biller", instructions="Be brief.", model=model, tools=[look])


async def arun(wrapped: Any, task: str) -> str:
    result = await wrapped.run(task)
    assert result.last_agent is agent  # notes are no part of an agent that a conversation goes on with
    return result.final_output


refused = ("run_streamed", "as_tool", "clone")
misused = {"Runner": lambda wrapped: Runner.run_sync(wrapped, "x")}
tell({"Agent": Part(agent, model.script, lambda w, task: w.run_sync(task).final_output, arun, refused, misused)})
