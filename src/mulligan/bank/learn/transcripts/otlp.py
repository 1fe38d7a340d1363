"""Traces of OpenTelemetry as OTLP JSON: the one run of an agent that is in them, as a transcript.

`mulligan learn` and `learn_traces` read files of any length and learn from each run; this is for a text with one.
"""

from __future__ import annotations

from io import BufferedReader, BytesIO

from mulligan.bank.learn.traces.otlp import TraceFile, looks_like_traces
from mulligan.bank.learn.traces.runs import Spans
from mulligan.core.errors import InvalidInput
from mulligan.core.turns import Turn


class OTLP:
    def recognises(self, text: str) -> bool:
        return looks_like_traces(text[:4096].encode("utf-8", "replace"))

    def read(self, text: str, name: str) -> list[Turn]:
        with Spans() as spans:
            for one in TraceFile("", name).read(BufferedReader(BytesIO(text.encode("utf-8", "replace")))):
                spans.add(one)
            runs = list(spans.runs())
        if error := next((run.error for run in runs if run.error), ""):
            raise InvalidInput(error)
        if len(runs) != 1:
            raise InvalidInput(
                f"{name}: these traces contain {len(runs)} agent runs, but a transcript must contain one. Learn "
                "from the trace file instead: mulligan learn FILE, or mulligan.learn_traces."
            )
        return list(runs[0].turns)
