"""An agent of openai-agents with a scripted model."""

from typing import Any

from framework_story import Model as Script
from framework_story import Part, tell
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

from agents import Agent, Model, ModelResponse, RunConfig, Runner, Usage, function_tool


class Scripted(Model):
    def __init__(self, tool: str, arguments: str) -> None:
        self.script, self.call = Script(), {"name": tool, "arguments": arguments}

    async def get_response(self, system_instructions: str | None, input: Any, *_: Any, **__: Any) -> ModelResponse:
        said = self.script.turn(f"{system_instructions}\n{input}", "function_call_output" in str(input))
        if said is None:
            id = f"c{len(self.script.asked)}"
            output: Any = ResponseFunctionToolCall(type="function_call", call_id=id, **self.call)
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


async def arun(wrapped: Any, task: str) -> str:
    result = await wrapped.run(task)
    assert result.last_agent in (agent, biller)  # notes are no part of an agent that a conversation goes on with
    return result.final_output


def own_filter(data: Any) -> Any:
    data.model_data.instructions += " Answer in English."
    return data.model_data


def run(wrapped: Any, task: str) -> str:
    result = wrapped.run_sync(task, run_config=RunConfig(call_model_input_filter=own_filter))
    assert all("Answer in English." in text for text in deciding.script.asked)
    return result.final_output


model = Scripted("look", '{"line":5}')
agent = Agent("agent", instructions="Be brief.", model=model, tools=[look])
deciding = Scripted("transfer_to_biller", "{}")
biller = Agent("biller", instructions="You bill.", model=deciding)
desk = Agent("desk", instructions="Hand it on.", model=deciding, handoffs=[biller])

refused = ("run_streamed", "as_tool", "clone")
misused = {"Runner": lambda wrapped: Runner.run_sync(wrapped, "x")}
handed = ("transfer_to_biller", "biller")
tell(
    {
        "Agent": Part(agent, model.script, lambda w, task: w.run_sync(task).final_output, arun, refused, misused),
        "desk": Part(desk, deciding.script, run, arun, refused, looks=handed),
    }
)
