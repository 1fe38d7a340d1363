"""A crew of CrewAI with a scripted model."""

from typing import Any

from crewai import Agent, BaseLLM, Crew, Task
from crewai.tools import tool
from framework_story import Model as Script
from framework_story import Part, tell


class Written(BaseLLM):
    """Writes calls of tools as text."""

    script: Any = None

    def call(self, messages: Any, *_: Any, **__: Any) -> Any:
        self._track_token_usage_internal({"prompt_tokens": 7, "completion_tokens": 2})
        said = self.script.turn(str(messages), "line 5" in str(messages))
        return self.calls() if said is None else self.says(said)

    async def acall(self, *args: Any, **kwargs: Any) -> Any:
        return self.call(*args, **kwargs)

    def calls(self) -> Any:
        return 'Thought: I look.\nAction: look\nAction Input: {"line": 5}'

    def says(self, answer: str) -> str:
        return f"Thought: I now know the final answer\nFinal Answer: {answer}"


class Native(Written):
    def supports_function_calling(self) -> bool:
        return True

    def calls(self) -> Any:
        return [{"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"line": 5}'}}]

    def says(self, answer: str) -> str:
        return answer


@tool("look")
def look(line: int) -> str:
    """Look at a line."""
    return f"line {line}"


def part(kind: Any) -> Part:
    async def arun(wrapped: Any, what: str) -> str:
        return (await wrapped.akickoff(inputs={"what": what})).raw

    def run(wrapped: Any, what: str) -> str:
        return wrapped.kickoff({"what": what}).raw

    model = kind(model="scripted", script=Script())
    agent = Agent(role="biller", goal="Bill well.", backstory="You bill.", llm=model, tools=[look])
    crew = Crew(agents=[agent], tasks=[Task(description="{what}", expected_output="The total.", agent=agent)])
    refused = ("kickoff_for_each", "kickoff_for_each_async", "copy", "replay", "train", "test")
    return Part(crew, model.script, run, arun, refused, {"stream": streamed})


def streamed(wrapped: Any) -> Any:
    wrapped.stream = True
    try:
        return wrapped.kickoff({"what": "x"})
    finally:
        wrapped.stream = False


tell({kind.__name__: part(kind) for kind in (Written, Native)})
