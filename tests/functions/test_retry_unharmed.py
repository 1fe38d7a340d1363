"""Our failure is never the user's: a store, a bank or a reader that fails costs a warning, and neither call nor result."""

import asyncio
import functools
import logging
import os
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

import mulligan
from mulligan import Attempt, Notes, ScriptedModel
from mulligan.core.errors import StoreError
from mulligan.functions.shared import close_shared
from mulligan.store import open_store
from support.each_row import each_row
from support.judges import in_euros


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("MULLIGAN_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("MULLIGAN_STORE", "")  # restored in the end, whatever a case sets
    monkeypatch.chdir(tmp_path)
    yield
    close_shared()


def bill_with(**options: Any) -> Callable[[str], str]:
    @mulligan.retry(judge=in_euros, **options)
    def bill(task: str, notes: Notes) -> str:
        return "12 EUR" if notes else "12"

    return bill


def a_file_in_the_way(folder: Path) -> None:
    (folder / "home").touch()


def no_database(folder: Path) -> None:
    (folder / "home").mkdir()
    (folder / "home" / "mulligan.db").write_bytes(b"This is no database at all. " * 300)


def a_folder_in_its_place(folder: Path) -> None:
    (folder / "home" / "mulligan.db").mkdir(parents=True)


def a_newer_version(folder: Path) -> None:
    bill_with()("Make the store")
    close_shared()
    with sqlite3.connect(folder / "home" / "mulligan.db") as db:
        db.execute("PRAGMA user_version = 1000000000")
    db.close()


def an_unreachable_server(folder: Path) -> None:
    os.environ["MULLIGAN_STORE"] = "postgresql://nobody@127.0.0.1:1/none"


def no_such_kind_of_store(folder: Path) -> None:
    os.environ["MULLIGAN_STORE"] = "papyrus:///scroll"


def a_broken_project_file(folder: Path) -> None:
    (folder / "mulligan.toml").write_text("[models\n")


BROKEN = [
    a_file_in_the_way,
    no_database,
    a_folder_in_its_place,
    a_newer_version,
    an_unreachable_server,
    no_such_kind_of_store,
    a_broken_project_file,
]


@pytest.mark.light_cases(5)
@pytest.mark.parametrize("breaks", BROKEN, ids=lambda breaks: breaks.__name__)
@pytest.mark.parametrize("bank", [None, "billing"])
def test_a_store_that_cannot_be_used_is_a_warning_once_and_the_calls_go_on(
    breaks: Callable[[Path], None],
    bank: str | None,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    breaks(tmp_path)
    caplog.clear()

    @mulligan.retry(judge=in_euros, bank=bank)
    async def bill_later(task: str, notes: Notes) -> str:
        return "12 EUR" if notes else "12"

    bill = bill_with(bank=bank)
    assert [bill("The total"), bill("The sum"), asyncio.run(bill_later("The total"))] == ["12 EUR"] * 3
    said = [record.message for record in caplog.records if "not recorded" in record.message]
    assert len(said) <= 1
    assert bank or said, "the first of the two cases of a kind says it"
    with pytest.raises((StoreError, mulligan.MulliganError)):
        bill_with(record="required")("The total")


@pytest.mark.parametrize("bank", [None, "billing"])
def test_a_store_that_is_lost_while_the_function_runs_loses_no_result(bank: str | None, tmp_path: Path) -> None:
    calls = list[int]()

    @mulligan.retry(judge=in_euros, bank=bank, tries=3)
    def bill(task: str, notes: Notes) -> str:
        calls.append(notes.trial)
        if notes.trial == 2:
            for file in (tmp_path / "home").iterdir():
                file.unlink()
        return "12 EUR" if notes.trial == 3 else "12"

    result = bill.run("The total")
    assert (result.value, calls) == ("12 EUR", [1, 2, 3])
    assert [trial.attempt.output for trial in result.episode.trials] == ["12", "12", "12 EUR"]


def test_a_required_record_is_refused_before_the_function_runs(tmp_path: Path) -> None:
    (tmp_path / "home").touch()
    calls = list[str]()

    @mulligan.retry(judge=in_euros, record="required")
    def bill(task: str, notes: Notes) -> str:
        calls.append(task)
        return "12 EUR"

    with pytest.raises(StoreError, match=r"cannot be created.*record='required'"):
        bill("The total")
    assert calls == []


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, asyncio.CancelledError])
def test_an_interruption_passes_without_a_store(error: type[BaseException], tmp_path: Path) -> None:
    (tmp_path / "home").touch()

    @mulligan.retry(judge=in_euros)
    async def bill(task: str, notes: Notes) -> str:
        raise error

    with pytest.raises(error):
        asyncio.run(bill("The total"))


class Unprintable:
    def __str__(self) -> str:
        raise RuntimeError("no text")

    __repr__ = __str__


def test_a_result_that_cannot_be_written_down_is_returned() -> None:
    made = Unprintable()

    def make(task: str) -> Unprintable:
        return made

    verdicts: list[Any] = [True, False, (False, "another")]
    for verdict in verdicts:  # a bare no shows the answer

        def judge(answer: object, verdict: Any = verdict) -> Any:
            return verdict

        assert mulligan.retry(judge=judge, tries=2, notes=None)(make)("Make it") is made  # pyright: ignore


def deep() -> Any:
    return functools.reduce(lambda inner, _: [inner], range(5000), [0])


@each_row("make", [Unprintable, lambda: [Unprintable()], lambda: {Unprintable(): 1}, lambda: [10**5000], deep])
def test_an_argument_that_cannot_be_written_down_is_passed_on(make: Callable[[], Any]) -> None:
    argument = make()

    @mulligan.retry(judge=in_euros)
    def bill(task: Any, more: Any, notes: Notes) -> str:
        assert task is argument or more is argument
        return "12 EUR" if offset and notes.trial == 3 else "12"

    offset = 10**5000  # a value that the function holds
    assert bill(argument, 0) == bill("The total", argument) == "12 EUR"


class UnprintableError(RuntimeError):
    def __str__(self) -> str:
        raise ValueError("no text")


@pytest.mark.parametrize("of", ["function", "judge"])
def test_an_exception_without_a_text_is_a_failed_try(of: str) -> None:
    def judge(answer: str) -> None:
        if of == "judge":
            broken()
        assert answer.endswith("EUR")

    tries = list[int]()

    def broken() -> None:
        if len(tries) < 3:
            exec("raise error", {"error": UnprintableError()})

    @mulligan.retry(judge=judge, wait=0)
    def bill(task: str, notes: Notes) -> str:
        tries.append(notes.trial)
        if of == "function":
            broken()
        return "12 EUR"

    assert bill("The total") == "12 EUR"
    assert tries == [1, 2, 3]


@pytest.mark.parametrize("reads", [True, False])
def test_a_reader_that_fails_loses_no_result(reads: bool) -> None:
    def judge(answer: Any) -> bool:
        return (answer if reads else answer["text"]) == "12 EUR"

    class Reader:
        def answer(self, result: Any) -> Any:
            return result["text" if reads else "missing"]

        def attempt(self, result: Any) -> Attempt:
            raise KeyError("usage")

    @mulligan.retry(judge=judge, reads=Reader())
    def bill(task: str, notes: Notes) -> dict[str, str]:
        return {"text": "12 EUR" if notes else "12"}

    assert bill("The total") == {"text": "12 EUR"}


def test_an_agent_whose_framework_cannot_be_read_runs_all_the_same() -> None:
    asked = list[str]()

    class Desk:
        def ask(self, text: str) -> str:
            asked.append(text)
            return "12 EUR" if len(asked) > 1 else "12"

    class OfDesks:
        PACKAGE = "desks"
        ENTRIES: Mapping[str, bool] = MappingProxyType({"ask": False})

        def recognises(self, agent: Any) -> bool:
            return True

        def __getattr__(self, name: str) -> Any:
            if name not in ("task", "noted", "answer", "attempt"):
                raise AttributeError(name)

            def fails(*_: Any) -> Any:
                raise KeyError("another version of the framework")

            return fails

    framework: Any = OfDesks()
    assert mulligan.wrap(Desk(), judge=in_euros, framework=framework).ask("The total") == "12 EUR"


def test_a_model_that_cannot_reflect_does_not_end_the_call() -> None:
    assert bill_with(reflect=ScriptedModel([]))("The total") == "12 EUR"


def test_a_function_that_cannot_reflect_now_does_not_end_the_call(caplog: pytest.LogCaptureFixture) -> None:
    def reflect(episode: mulligan.Episode) -> str:
        raise ConnectionResetError("reset by peer")

    assert bill_with(reflect=reflect)("The total") == "12 EUR"
    assert "reset by peer" in caplog.text


def test_a_function_that_writes_no_lesson_says_what_is_wrong() -> None:
    def reflect(episode: mulligan.Episode) -> Any:
        return 3

    with pytest.raises(mulligan.MulliganError, match=r"reflect returned 3.*Return a string, a Reflection"):
        bill_with(reflect=reflect)("The total")


def test_a_bank_that_fails_is_no_memory_and_no_exception(caplog: pytest.LogCaptureFixture) -> None:
    class Broken:
        async def recall(self, task: Any, *, top_k: int | None = None) -> Any:
            raise OSError("the disk is gone")

        async def learn(self, episodes: Any) -> Any:
            raise RuntimeError("a bug of ours")

        async def outcome_of(self, receipt: str, success: bool) -> None:
            raise RuntimeError("a bug of ours")

    assert bill_with(bank=Broken())("The total") == "12 EUR"
    assert "the disk is gone" in caplog.text


async def test_a_program_with_a_loop_of_its_own_goes_on_without_its_memory(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "home").touch()
    async with mulligan.memory("billing") as memory:
        assert str(await memory.notes("Write the total of 3 and 4.")) == ""
        messages = [{"role": "user", "content": "Write the total."}, {"role": "assistant", "content": "12"}]
        learned = await memory.learn(messages, success=False, why="no currency")
    assert (learned.facts, learned.nothing_because) == ((), "the bank failed; the log says why")
    assert "cannot be created" in caplog.text


async def test_a_store_that_works_again_is_used_again(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    (tmp_path / "home").touch()
    bill = bill_with()
    bill("The total")
    (tmp_path / "home").unlink()
    bill("The sum")
    async with open_store(tmp_path / "home" / "mulligan.db") as store:
        assert [episode.task.prompt for episode in await store.list()] == ["The sum"]
