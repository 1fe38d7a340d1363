"""A wheel in the form of BFCL's, with a service, a checker and tasks of our own: a desk that lends books."""

from __future__ import annotations

import json
import sys
import zipfile
from pathlib import Path
from typing import Any

from mulligan.bench.bfcl._wheel import _DOCS as DOCS  # pyright: ignore[reportPrivateUsage]
from mulligan.bench.harness.running import run_benchmark
from mulligan.core.questions import Question, Sampling
from mulligan.models.scripted import Line, ScriptedModel
from mulligan.store.sqlite import SqliteStore

NAME = "bfcl_eval-0.0.0-py3-none-any.whl"
_PACKAGE = "bfcl_eval/eval_checker/multi_turn_eval"
_UTILS = """
import copy
import json

DESKS = {}


class TicketAPI:
    def __init__(self, books):
        self.books = books

    def find(self, title):
        return {"place": self.books[title]}

    def lend(self, title, reader, days=14):
        self.books[title] = f"{reader}, {days} days"
        return {"lent": title}


def execute_multi_turn_func_call(
    func_call_list, initial_config, involved_classes, model_name, test_entry_id, long_context=False, is_evaL_run=False
):
    books = initial_config["TicketAPI"]["books"]
    desk = DESKS.setdefault((model_name, test_entry_id), TicketAPI(copy.deepcopy(books)))
    results = []
    for call in func_call_list:
        try:
            results.append(json.dumps(eval(call, {"find": desk.find, "lend": desk.lend})))
        except Exception as error:
            results.append(f"Error during execution: {error!r}")
    return results, {"TicketAPI": desk}
"""
_CHECKER = f"""
from {_PACKAGE.replace("/", ".")}.multi_turn_utils import execute_multi_turn_func_call


def multi_turn_checker(turns, truth, entry, category, model):
    given = (entry["initial_config"], entry["involved_classes"])
    for number, (steps, right) in enumerate(zip(turns, truth)):
        for calls in steps:
            _, ours = execute_multi_turn_func_call(calls, *given, model, entry["id"])
        _, theirs = execute_multi_turn_func_call(right, *given, model + " truth", entry["id"])
        if right and (not steps or vars(ours["TicketAPI"]) != vars(theirs["TicketAPI"])):
            return {{"valid": False, "error_message": f"turn {{number}} is wrong"}}
    return {{"valid": True}}
"""


def _function(name: str, does: str, needed: list[str], **arguments: str) -> dict[str, Any]:
    properties = {argument: {"type": kind, "description": f"The {argument}."} for argument, kind in arguments.items()}
    parameters = {"type": "dict", "properties": properties, "required": needed}
    return {"name": name, "description": f"About the desk. Tool description: {does}", "parameters": parameters}


FUNCTIONS = [
    _function("find", "Say where a book is.", ["title"], title="string"),
    _function("lend", "Lend a book.", ["title", "reader"], title="string", reader="string", days="integer"),
]
READERS = ("Ines", "Tom", "Ada", "Kofi")
QUESTIONS = ("Where is Heat?", "Lend it to {} for a week.")
TRUTH = (["find(title='Heat')"], ["lend(title='Heat', reader='{}', days=7)"])


def write_wheel(folder: Path) -> Path:
    """The wheel, with four tasks of two turns in `base`, and one in `miss_func` whose second turn brings `lend`."""
    tasks, truths = list[dict[str, Any]](), list[dict[str, Any]]()
    for number, reader in enumerate(READERS):
        turns = [[{"role": "user", "content": text.format(reader)}] for text in QUESTIONS]
        config = {"TicketAPI": {"books": {"Heat": "shelf 4"}}}
        tasks.append({"id": f"multi_turn_base_{number}", "question": turns, "initial_config": config})
        tasks[-1] |= {"involved_classes": ["TicketAPI"], "path": []}
        calls = [[call.format(reader) for call in turn] for turn in TRUTH]
        truths.append({"id": f"multi_turn_base_{number}", "ground_truth": calls})
    missing = {**tasks[0], "id": "multi_turn_miss_func_0", "missed_function": {"1": ["lend"]}}
    missing["question"] = [[*tasks[0]["question"][0], *tasks[0]["question"][1]], []]
    files = {
        **{f"{name}/__init__.py": "" for name in ("bfcl_eval", "bfcl_eval/eval_checker", _PACKAGE)},
        f"{_PACKAGE}/multi_turn_utils.py": _UTILS,
        f"{_PACKAGE}/multi_turn_checker.py": _CHECKER,
        **{f"bfcl_eval/data/multi_turn_func_doc/{file}.json": "" for file in DOCS.values()},
        f"bfcl_eval/data/multi_turn_func_doc/{DOCS['TicketAPI']}.json": _lines(FUNCTIONS),
        "bfcl_eval/data/BFCL_v4_multi_turn_base.json": _lines(tasks),
        "bfcl_eval/data/possible_answer/BFCL_v4_multi_turn_base.json": _lines(truths),
        "bfcl_eval/data/BFCL_v4_multi_turn_miss_func.json": _lines([missing]),
        "bfcl_eval/data/possible_answer/BFCL_v4_multi_turn_miss_func.json": _lines(
            [{**truths[0], "id": missing["id"]}]
        ),
    }
    with zipfile.ZipFile(folder / NAME, "w") as wheel:
        for name, text in files.items():
            wheel.writestr(name, text)
    return folder / NAME


def _lines(rows: list[dict[str, Any]]) -> str:
    return "".join(f"{json.dumps(row)}\n" for row in rows)


def answer(question: Question, sampling: Sampling) -> Line:
    """What is right at each place of a task in `base`, but Tom's book is lent to Ada."""
    trajectory = question.messages[-1].text.rpartition("Here is the next user.")[2]
    lines = trajectory.strip().splitlines()
    if lines[-2].startswith("{"):
        return "Done."
    if lines[-2] == f"User: {QUESTIONS[0]}":
        return "find(title='Heat')"
    reader = "Ada" if "Tom" in lines[-2] else next(reader for reader in READERS if reader in lines[-2])
    return f'[lend(title="Heat", reader="{reader}", days=7)]'


async def run_until(call: int, store: str, wheel: str) -> None:
    """Run the benchmark; at this call of its model, say so on standard output and wait for the end."""
    asked = list[Question]()

    def stopping(question: Question, sampling: Sampling) -> Line:
        asked.append(question)
        if len(asked) == call:
            sys.stdout.write("asked\n")
            sys.stdout.flush()
            sys.stdin.read()
        return answer(question, sampling)

    await run_benchmark("bfcl", model=ScriptedModel(stopping), store=SqliteStore(Path(store)), data=wheel)
