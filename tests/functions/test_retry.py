"""`retry`: what the next try is given, what a caller gets."""

import asyncio
import copy
import functools
import pickle
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pytest
from each_row import each_row

import mulligan
from mulligan import Notes, NotSolved, ScriptedModel
from mulligan.core.errors import InvalidInput
from support.judges import in_euros


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MULLIGAN_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)


def test_the_second_try_reads_what_failed_and_the_first_reads_nothing() -> None:
    read = list[Notes]()

    @mulligan.retry(judge=in_euros)
    def bill(task: str, notes: Notes) -> str:
        read.append(notes)
        return "12 EUR" if notes else "12"

    assert bill("The total of 5 and 7") == "12 EUR"
    assert str(read[0]) == ""
    assert (read[1].trial, len(read)) == (2, 2)
    assert "no currency in '12'" in read[1]
    assert [(found.asked, found.got) for found in read[1].evidence] == [
        ("assert answer.endswith('EUR')", "no currency in '12'")
    ]


async def test_an_asynchronous_function_under_a_running_loop() -> None:
    @mulligan.retry(judge=in_euros)
    async def bill(task: str, notes: Notes) -> str:
        await asyncio.sleep(0)
        return "12 EUR" if notes else "12"

    result = await bill.run("The total")
    assert (result.value, result.episode.solved, len(result.episode.trials)) == ("12 EUR", True, 2)
    assert bill.episode == result.episode


async def test_a_synchronous_function_under_a_running_loop_as_in_a_notebook() -> None:
    @mulligan.retry(judge=in_euros)
    def bill(task: str, notes: Notes) -> str:
        return asyncio.run(answer()) if False else ("12 EUR" if notes else "12")

    assert bill("The total") == "12 EUR"


def test_a_synchronous_function_runs_in_the_thread_of_its_caller_and_may_run_a_loop() -> None:
    @mulligan.retry(judge=lambda answer: answer == threading.get_ident())
    def identity(task: str, notes: Notes) -> int:
        return asyncio.run(answer())

    async def answer() -> int:
        return threading.get_ident()

    assert identity("who") == threading.get_ident()


async def answer() -> str:
    return "12"


def test_methods_keep_their_instance() -> None:
    @dataclass
    class Desk:
        currency: str

        @mulligan.retry(judge=in_euros, tries=2)
        def bill(self, task: str, notes: Notes) -> str:
            return f"12 {self.currency}" if notes else "12"

    euros, pounds = Desk("EUR"), Desk("GBP")
    assert euros.bill("The total") == "12 EUR"
    assert pounds.bill.run("The total").episode.solved is False


@pytest.mark.slow
def test_arguments_may_be_arrays_and_lists_that_hold_themselves() -> None:
    looped = list[Any]()
    looped.append(looped)

    @mulligan.retry(judge=lambda answer: answer >= 6)
    def total(of: object, notes: Notes) -> int:
        return 6 if notes else 5

    assert total(np.array([1, 2, 3])) == 6
    assert total(looped) == 6


def test_notes_that_go_into_something_else_than_a_text_are_refused_before_the_call() -> None:
    calls = list[int]()

    @mulligan.retry(judge=lambda answer: False, notes="count")
    def bill(count: int) -> None:
        calls.append(count)

    with pytest.raises(InvalidInput, match=r"bill\(\) received a int for 'count', but notes can be appended only"):
        bill(3)
    assert calls == []


def test_notes_are_found_by_annotations_with_something_beside_them() -> None:
    def optional(task: str, past: Notes | None = None) -> str:
        return "12 EUR" if past else "12"

    def annotated(task: str, past: Annotated[Notes, "what failed"]) -> str:
        return "12 EUR" if past else "12"

    for function in (optional, annotated):
        assert mulligan.retry(judge=in_euros)(function)("The total") == "12 EUR"  # pyright: ignore


def test_one_retried_function_around_another() -> None:
    tried = list[str]()

    @mulligan.retry(judge=lambda answer: answer.startswith("12"), notes=None)
    @mulligan.retry(judge=in_euros)
    def bill(task: str, notes: Notes) -> str:
        tried.append(task)
        return "12 EUR" if notes else "12"

    assert bill("The total") == "12 EUR"
    assert len(tried) == 2


def test_the_newest_episode_is_found_from_outside_of_the_task_that_made_the_call() -> None:
    @mulligan.retry(judge=in_euros)
    async def bill(task: str, notes: Notes) -> str:
        return "12 EUR" if notes else "12"

    assert asyncio.run(bill("The total")) == "12 EUR"
    assert bill.episode is not None
    assert bill.episode.solved


@mulligan.retry(judge=in_euros, tries=2, unsolved="raise")
def at_the_top(task: str, notes: Notes) -> str:
    return task


def test_a_retried_function_and_its_error_are_pickled_as_functions_and_errors_are() -> None:
    assert pickle.loads(pickle.dumps(at_the_top)) is at_the_top
    assert copy.deepcopy({"bill": at_the_top})["bill"] is at_the_top
    with pytest.raises(NotSolved) as raised:
        at_the_top("12")
    again = pickle.loads(pickle.dumps(raised.value))
    assert (str(again), again.episode) == (str(raised.value), raised.value.episode)


def test_an_exception_is_a_failed_try_with_its_message() -> None:
    read = list[str]()

    @mulligan.retry(judge=lambda answer: True, failures=(ValueError, KeyError))
    def act(notes: Notes) -> str:
        read.append(str(notes))
        if len(read) < 2:
            raise ValueError("the file is empty")
        if len(read) < 3:
            raise RuntimeError("stop")
        return "never"

    with pytest.raises(RuntimeError, match="stop"):
        act()
    assert "ValueError: the file is empty" in read[1]
    assert len(read) == 2


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_an_interruption_is_never_a_failed_try(error: type[BaseException]) -> None:
    calls = list[int]()

    @mulligan.retry(judge=lambda answer: True)
    def act(notes: Notes) -> str:
        calls.append(1)
        raise error

    with pytest.raises(error):
        act()
    assert len(calls) == 1


def test_not_solved_carries_the_episode_and_the_last_exception() -> None:
    @mulligan.retry(judge=in_euros, unsolved="raise", tries=2)
    def wrong(task: str, notes: Notes) -> str:
        return "12"

    @mulligan.retry(judge=in_euros, tries=2)
    def raising(task: str, notes: Notes) -> str:
        raise ValueError("no such file")

    with pytest.raises(NotSolved, match=r"2 tries.*no currency") as found:
        wrong("The total")
    assert [trial.attempt.output for trial in found.value.episode.trials] == ["12", "12"]
    with pytest.raises(NotSolved) as found:
        raising("The total")  # there is nothing to return
    assert isinstance(found.value.__cause__, ValueError)


def test_the_best_result_is_returned_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    scores = iter([0.2, 0.9, 0.1])

    @mulligan.retry(judge=lambda answer: next(scores))
    def act(notes: Notes) -> int:
        return notes.trial

    assert act() == 2
    assert "act was not solved in 3 tries" in caplog.text


def test_notes_that_name_no_parameter_are_refused_beside_a_parameter_for_notes() -> None:
    with pytest.raises(mulligan.MulliganError, match="has no parameter 'promt' for the failures"):

        @mulligan.retry(judge=in_euros, notes="promt")
        def ask(prompt: str, notes: Notes) -> str:
            return prompt


def test_notes_are_appended_to_the_argument_that_is_named() -> None:
    prompts = list[str]()

    @mulligan.retry(judge=in_euros, notes="prompt")
    def ask(prompt: str, times: int = 1) -> str:
        prompts.append(prompt)
        return "12 EUR" if "no currency" in prompt else "12"

    assert ask("The total") == "12 EUR"
    assert prompts[0] == "The total"
    assert prompts[1].startswith("The total\n\nEarlier attempts")


def test_no_notes_is_plain_resampling() -> None:
    answers = iter(["12", "12 EUR"])

    @mulligan.retry(judge=in_euros, notes=None)
    def ask(prompt: str) -> str:
        return next(answers)

    assert ask("The total") == "12 EUR"


def test_what_cannot_work_is_refused_at_decoration() -> None:
    def stream(notes: Notes) -> Iterator[str]:
        yield "x"

    async def stream_async(notes: Notes) -> AsyncIterator[str]:
        yield "x"

    def without_notes(task: str) -> str:
        return task

    decorate = mulligan.retry(judge=in_euros)
    for function in (stream, stream_async):
        with pytest.raises(InvalidInput, match="piece by piece"):
            decorate(function)
    with pytest.raises(InvalidInput, match=r"no parameter 'notes'.*notes='prompt'"):
        decorate(without_notes)
    with pytest.raises(InvalidInput, match="no parameter 'goal' for the task; it has task"):
        mulligan.retry(judge=in_euros, notes=None, task="goal")(without_notes)
    with pytest.raises(InvalidInput, match=r"needs price, which .*without_notes does not have"):
        mulligan.retry(judge=lambda price, answer: True, notes=None)(without_notes)  # pyright: ignore
    with pytest.raises(InvalidInput, match="takes no argument"):
        mulligan.retry(judge=lambda: True, notes=None)(without_notes)  # pyright: ignore
    with pytest.raises(InvalidInput, match="decorates a function, not a str"):
        mulligan.retry(judge=in_euros)("bill")  # pyright: ignore
    with pytest.raises(InvalidInput, match="does not declare its parameters"):
        mulligan.retry(judge=in_euros, notes=None)(str)  # pyright: ignore


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"unsolved": "first"}, "'best' or 'raise'"),
    ({"judge": "exact_mach:12"}, "exact_match"),
    ({"judge": 12}, "or the Path of a test file, not 12"),
    ({"tries": 0}, "tries must be at least 1, not 0"),
    ({"tries": "4"}, "tries must be an integer, not '4'"),
    ({"tries": True}, "tries must be an integer, not True"),
    ({"limits": 3}, "limits must be a Limits object or a mapping such as"),
    ({"limits": {"trials": 5}}, "limits contains 'trials': use tries=5 instead"),
    ({"limits": {"seconds": "60"}}, "'seconds' must be a number, not '60'"),
    ({"threshold": "0.4"}, "threshold must be a number, not '0.4'"),
    ({"threshold": True}, "threshold must be a number, not True"),
    ({"threshold": float("nan")}, "threshold must be a number, not nan"),
    ({"judge": None, "record": "always"}, "record must be True, False or 'required', not 'always'"),
    ({"task": 3}, "task must be a function or a string, not 3"),
    ({"notes": 3}, "notes must be a string, not 3"),
    ({"store": "sqlite:///x.db"}, "store must be a store, not 'sqlite:///x.db'. MULLIGAN_STORE names a store"),
    ({"reads": 3}, "'reads' must have answer and attempt, not 3"),
    ({"wait": "1"}, "'wait' must be the first wait in seconds"),
    ({"wait": -1}, "'wait' must be the first wait in seconds"),
    ({"wait": (5, 1)}, "'wait' must be the first wait in seconds"),
    ({"wait": (1, 2, 3)}, "'wait' must be the first wait in seconds"),
    ({"wait": True}, "'wait' must be the first wait in seconds"),
    ({"failures": 3}, "'failures' must be classes of exceptions, not 3"),
    ({"limits": {"second": 5}}, "second"),
    ({"failures": KeyboardInterrupt}, "classes of exceptions, not <class 'KeyboardInterrupt'>"),
    ({"failures": [ValueError, "no"]}, "classes of exceptions, not 'no'"),
    ({"before_retry": "undo"}, "before_retry must be a function, not 'undo'"),
    ({"reflect": 3}, "reflect must be a function or a string or a model or a reflector, not 3"),
    ({"bank": 3}, "bank must be the name of an agent, or a bank, not 3"),
    ({"key": 3}, "key must be a function or a string, not 3"),
]


@each_row(("options", "message"), WRONG)
def test_options_that_cannot_work_are_refused_at_decoration(options: dict[str, Any], message: str) -> None:
    with pytest.raises(mulligan.MulliganError, match=message):
        mulligan.retry(**{"judge": in_euros, "notes": None, **options})(lambda task: task)  # pyright: ignore


def test_a_call_with_wrong_arguments_is_the_usual_error() -> None:
    @mulligan.retry(judge=in_euros)
    def bill(task: str, notes: Notes) -> str:
        return task

    with pytest.raises(TypeError, match=r"bill\(\): missing a required argument: 'task'"):
        bill()  # pyright: ignore[reportCallIssue]


def test_before_retry_undoes_what_the_try_before_has_done() -> None:
    made, undone = list[str](), list[Notes]()

    def undo(notes: Notes) -> None:
        undone.append(notes)
        made.clear()

    @mulligan.retry(judge=in_euros, before_retry=undo)
    def act(task: str, notes: Notes) -> str:
        made.append("file")
        assert made == ["file"]
        return "12 EUR" if notes.trial == 3 else "12"

    assert act("The total") == "12 EUR"
    assert [notes.trial for notes in undone] == [2, 3]


def test_lessons_of_a_function_and_of_a_model() -> None:
    read = list[str]()

    def reflect(episode: mulligan.Episode) -> str:
        return f"Write the currency after {episode.trials[-1].attempt.output}."

    @mulligan.retry(judge=in_euros, reflect=reflect, tries=2)
    def by_function(task: str, notes: Notes) -> str:
        read.append(str(notes))
        return "12 EUR" if notes else "12"

    assert by_function("The total") == "12 EUR"
    assert "Write the currency after 12." in read[1]

    model = ScriptedModel(["The answer 12 has no currency: end it with EUR."])

    @mulligan.retry(judge=in_euros, reflect=model, tries=2)
    def by_model(task: str, notes: Notes) -> str:
        read.append(str(notes))
        return "12 EUR" if "end it with EUR" in notes else "12"

    assert by_model("The total") == "12 EUR"
    assert len(model.questions) == 1


def test_a_bank_gives_the_next_call_what_the_judge_said() -> None:
    read = list[Notes]()

    def make() -> Callable[[str], str]:
        @mulligan.retry(judge=in_euros, bank="billing")
        def bill(task: str, notes: Notes) -> str:
            read.append(notes)
            return "12 EUR" if "no currency" in notes else "12"

        return bill

    assert make()("Write the total of these lines: 5, 7") == "12 EUR"
    assert make()("Write the total of these lines: 8, 9") == "12 EUR"
    assert [notes.trial for notes in read] == [1, 2, 1]  # the second call was right at once
    assert len(read[2].lessons) == 1
    assert "passed: 12 EUR" in read[2]


def test_time_is_a_limit() -> None:
    @mulligan.retry(judge=lambda answer: False, limits={"seconds": 0.000001}, tries=50)
    def act(notes: Notes) -> str:
        return "x"

    result = act.run()
    assert result.episode.stop is not None
    assert (result.episode.stop.reason, len(result.episode.trials)) == ("over_budget", 1)


async def test_an_asynchronous_function_is_cut_off_when_its_time_is_up() -> None:
    @mulligan.retry(judge=in_euros, limits={"seconds": 0.05}, unsolved="raise")
    async def act(task: str, notes: Notes) -> str:
        await asyncio.Event().wait()
        return "never"

    with pytest.raises(NotSolved, match="over_budget"):
        await asyncio.wait_for(act("x"), 30)


def test_the_decorated_function_says_what_it_is() -> None:
    @mulligan.retry(judge=in_euros)
    def bill(task: str, notes: Notes) -> str:
        """Writes a bill."""
        return task

    import inspect

    assert (bill.__name__, bill.__doc__) == ("bill", "Writes a bill.")  # pyright: ignore
    assert list(inspect.signature(bill).parameters) == ["task"]
    assert functools.partial(bill, "12 EUR")() == "12 EUR"


# --- at once --------------------------------------------------------------------------------------------------------


@pytest.mark.slow
async def test_a_thousand_calls_at_once_never_mix_their_notes() -> None:
    @mulligan.retry(judge=lambda number, answer: (answer == number, f"not {answer} but {number}"), record=False)
    async def act(number: int, notes: Notes) -> int:
        await asyncio.sleep(0)
        if not notes:
            return -1
        assert f"but {number}" in notes
        return number

    assert await asyncio.gather(*(act(n) for n in range(1000))) == list(range(1000))


def test_threads_and_equal_calls_are_episodes_of_their_own() -> None:
    @mulligan.retry(judge=in_euros)
    def bill(task: str, notes: Notes) -> str:
        return f"{task} EUR" if notes else task

    with ThreadPoolExecutor(8) as threads:
        results = list(threads.map(bill.run, ["12"] * 24))
    assert {result.value for result in results} == {"12 EUR"}
    assert len({result.episode.id for result in results}) == 24
    assert {len(result.episode.trials) for result in results} == {2}


def test_without_parentheses_and_a_judge_what_is_returned_is_right_and_exceptions_are_tried_again() -> None:
    read = list[str]()

    @mulligan.retry
    def bill(task: str, notes: Notes) -> str:
        read.append(str(notes))
        if not notes:
            raise ValueError("no currency")
        return "12 EUR"

    @mulligan.retry
    async def bill_later(task: str) -> str:
        return f"{task}: 12 EUR"

    @mulligan.retry()
    def numbers(count: int) -> Iterator[int]:
        return iter(range(count))

    assert bill("The total") == "12 EUR"  # pyright: ignore[reportUnknownMemberType]
    assert "no currency" in read[1]
    assert asyncio.run(bill_later("The total")) == "The total: 12 EUR"
    assert list(numbers(2)) == [0, 1]


def test_methods_of_classes_may_be_decorated_in_either_order() -> None:
    class Desk:
        @mulligan.retry
        @classmethod
        def above(cls, task: str) -> str:
            return f"{cls.__name__} {task}"

        @classmethod
        @mulligan.retry
        def below(cls, task: str) -> str:
            return f"{cls.__name__} {task}"

        @mulligan.retry(judge=in_euros, notes=None)
        @staticmethod
        def static(task: str) -> str:
            return f"{task} EUR"

    desk: Any = Desk
    assert [desk.above("a"), desk().above("a"), desk.below("a"), desk().below("a")] == ["Desk a"] * 4
    assert [desk.static("12"), desk().static("12")] == ["12 EUR"] * 2


def test_the_limit_that_ended_a_call_is_named(caplog: pytest.LogCaptureFixture) -> None:
    @mulligan.retry(judge=lambda answer: False, limits={"seconds": 0.000001}, tries=50)
    def act(notes: Notes) -> str:
        return "x"

    assert act() == "x"
    assert "act was not solved in 1 try (over_budget: 0.0 of 1e-06 seconds used)" in caplog.text
