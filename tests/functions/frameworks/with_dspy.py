"""Modules of DSPy with its own `DummyLM`, whose answer depends on what it is asked."""

from typing import Any

import dspy
from dspy.utils import DummyLM
from framework_story import Model as Script
from framework_story import Part, tell

script = Script(looks=False)


class Scripted(DummyLM):
    def forward(self, prompt: Any = None, messages: Any = None, **kwargs: Any) -> Any:
        self.answers = iter([{"reasoning": "It is a sum.", "answer": script.turn(str(messages), True)}])
        return super().forward(prompt=prompt, messages=messages, **kwargs)


dspy.configure(lm=Scripted([]), track_usage=True)


def part(module: Any) -> Part:
    async def arun(wrapped: Any, task: str) -> str:
        return (await wrapped.acall(question=task)).answer

    refused = ("forward", "aforward", "batch", "deepcopy", "reset_copy")
    return Part(module, script, lambda wrapped, task: wrapped(question=task).answer, arun, refused, tokens=(0, 0))


tell({"Predict": part(dspy.Predict("question -> answer")), "CoT": part(dspy.ChainOfThought("question -> answer"))})
