"""Agents of smolagents with a scripted model."""

from typing import Any

from framework_story import Model as Script
from framework_story import Part, tell
from smolagents import CodeAgent, Model, ToolCallingAgent, tool
from smolagents.models import ChatMessage, ChatMessageToolCall, ChatMessageToolCallFunction, MessageRole, TokenUsage


class Scripted(Model):
    def __init__(self, code: bool) -> None:
        super().__init__()
        self.script, self.code = Script(), code

    def generate(self, messages: list[Any], *_: Any, **__: Any) -> ChatMessage:
        text = "\n".join(str(message) for message in messages)
        said = self.script.turn(text, "line 5" in text)
        message = ChatMessage(role=MessageRole.ASSISTANT, token_usage=TokenUsage(7, 2))
        if self.code:
            code = "print(look(line=5))" if said is None else f"final_answer({said!r})"
            message.content = f"I write code.\n<code>\n{code}\n</code>"
        else:
            name, given = ("look", {"line": 5}) if said is None else ("final_answer", {"answer": said})
            call = ChatMessageToolCall(
                ChatMessageToolCallFunction(given, name), f"c{len(self.script.asked)}", "function"
            )
            message.content, message.tool_calls = "I call a tool.", [call]
        return message


@tool
def look(line: int) -> str:
    """Look at a line.

    Args:
        line: Its number.
    """
    return f"line {line}"


def part(kind: Any) -> Part:
    model = Scripted(kind is CodeAgent)
    agent = kind([look], model, verbosity_level=0)
    misused = {"stream": lambda wrapped: wrapped.run("x", stream=True)}
    return Part(agent, model.script, lambda wrapped, task: wrapped.run(task), None, ("__call__", "step"), misused)


tell({kind.__name__: part(kind) for kind in (CodeAgent, ToolCallingAgent)})
