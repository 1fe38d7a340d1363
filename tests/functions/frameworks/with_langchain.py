"""An agent of LangChain, which is a graph of LangGraph, and a chat model alone, with LangChain's own fake model."""

from typing import Any

from framework_story import Model as Script
from framework_story import Part, tell
from langchain.agents import create_agent
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult


class Scripted(GenericFakeChatModel):
    script: Any

    def _generate(self, messages: list[Any], *_: Any, **__: Any) -> ChatResult:
        said = self.script.turn(str(messages), "line 5" in str(messages))
        calls: Any = [{"name": "look", "args": {"line": 5}, "id": "c1"}] if said is None else []
        usage: Any = {"input_tokens": 7, "output_tokens": 2, "total_tokens": 9}
        message = AIMessage(said or "", tool_calls=calls, usage_metadata=usage)
        return ChatResult(generations=[ChatGeneration(message=message)])

    def bind_tools(self, tools: Any, **_: Any) -> Any:
        return self


def look(line: int) -> str:
    """Look at a line."""
    return f"line {line}"


def graph() -> Part:
    def asked(task: str) -> Any:
        return {"messages": [{"role": "user", "content": task}]}

    async def arun(wrapped: Any, task: str) -> str:
        return (await wrapped.ainvoke(asked(task)))["messages"][-1].content

    def run(wrapped: Any, task: str) -> str:
        return wrapped.invoke(asked(task))["messages"][-1].content

    script = Script()
    agent = create_agent(Scripted(messages=iter(()), script=script), [look], system_prompt="Be brief.")
    refused = ("stream", "astream", "astream_events", "batch", "abatch", "with_config", "pipe", "copy", "__call__")
    return Part(agent, script, run, arun, refused)


def chat() -> Part:
    async def arun(wrapped: Any, task: str) -> str:
        return (await wrapped.ainvoke(task)).content

    script = Script(looks=False)
    model = Scripted(messages=iter(()), script=script)
    refused = ("stream", "generate", "bind_tools", "with_structured_output")
    return Part(model, script, lambda wrapped, task: wrapped.invoke(task).content, arun, refused)


tell({"graph": graph(), "chat": chat()})
