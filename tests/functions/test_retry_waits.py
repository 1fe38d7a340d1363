"""How long `retry` waits, what of an exception the next try reads, and what can be read only once."""

import codecs
import errno
import io
import itertools
import math
import socket
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from email.message import Message
from email.utils import format_datetime
from pathlib import Path
from typing import Any
from urllib.error import HTTPError

import httpx
import pytest
from each_row import each_row
from hypothesis import given
from hypothesis import strategies as st

import mulligan
from mulligan import Notes, NotSolved
from mulligan.core.errors import LONGEST_TEXT, InvalidInput, error_text
from mulligan.core.failures import FailedTry, is_transient, retry_after, seconds_to_wait
from mulligan.functions.shared import close_shared
from support.judges import in_euros


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("MULLIGAN_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    yield
    close_shared()


class Refused(Exception):
    """As clients raise it, with what they keep beside the message."""

    def __init__(self, **kept: Any) -> None:
        super().__init__("refused")
        self.__dict__.update(kept)


def response(status: int, **headers: str) -> httpx.Response:
    fields = {name.replace("_", "-"): value for name, value in headers.items()}
    return httpx.Response(status, headers=fields, request=httpx.Request("GET", "https://example.org"))


def raised_from(cause: BaseException) -> Exception:
    error = RuntimeError("the agent failed")
    error.__cause__ = cause
    return error


def while_handling(context: BaseException) -> Exception:
    error = ValueError("no currency")
    error.__context__ = context
    return error


# --- waiting --------------------------------------------------------------------------------------------------------

FIELDS = Message()
FIELDS["Retry-After"] = "7"
ASKED: list[tuple[str, Exception, float | None]] = [
    ("httpx, openai, anthropic", httpx.HTTPStatusError("", request=response(429).request, response=response(429, Retry_After="3")), 3.0),
    ("urllib", HTTPError("https://example.org", 503, "busy", FIELDS, io.BytesIO()), 7.0),
    ("botocore", Refused(response={"ResponseMetadata": {"HTTPHeaders": {"retry-after": "2"}}}), 2.0),
    ("aiohttp", Refused(status=429, headers={"retry-after": "4"}), 4.0),
    ("an attribute", Refused(retry_after=1.5), 1.5),
    ("an attribute that is a time span", Refused(retry_after=timedelta(minutes=1)), 60.0),
    ("milliseconds", Refused(response=response(429, retry_after_ms="250", retry_after="9")), 0.25),
    ("a cause", raised_from(Refused(retry_after=5)), 5.0),
    ("a group", ExceptionGroup("two", [Refused(retry_after=5), Refused(retry_after=6)]), 6.0),
    ("nothing", ValueError("no"), None),
    ("no number", Refused(retry_after="soon"), None),
    ("an endless one", Refused(retry_after=math.inf), None),
    ("a negative one", Refused(headers={"Retry-After": "-3"}), None),
    ("a bool", Refused(retry_after=True), None),
    ("a number without end", Refused(retry_after=10**400), None),
    ("raw headers", Refused(response=Refused(headers=[(b"Retry-After", b"8")])), 8.0),
    ("headers in bytes", Refused(headers={b"retry-after": b"9"}), 9.0),
]  # fmt: skip


@each_row(("error", "seconds"), [case[1:] for case in ASKED])
def test_what_a_server_asks_to_wait_is_read_of_its_exception(error: Exception, seconds: float | None) -> None:
    assert retry_after(error) == seconds


def test_a_date_to_retry_after_is_so_many_seconds_from_now() -> None:
    then = format_datetime(datetime.now(UTC) + timedelta(hours=1), usegmt=True)
    assert 3500 < (retry_after(Refused(headers={"Retry-After": then})) or 0) <= 3600
    assert retry_after(Refused(headers={"Retry-After": "Fri, 31 Dec 1999 23:59:59 GMT"})) == 0.0


@given(st.integers(1, 200), st.floats(0.001, 100), st.floats(0, 1000), st.floats(0, 1))
def test_waits_double_with_some_chance_up_to_the_longest(number: int, first: float, more: float, chance: float) -> None:
    seconds = seconds_to_wait((first, first + more), number, ValueError("no"), lambda: chance)
    grown = first * 2.0 ** min(number - 1, 60)
    assert min(grown, first + more) <= seconds <= min(grown * 1.5, first + more)


def half_more(failed: FailedTry) -> float:
    return failed.attempt_number + 0.5


def its_first_argument(failed: FailedTry) -> Any:
    return failed.exception.args[0]


WAITS: list[tuple[str, Any, Exception, float]] = [
    ("by default an exception is tried again at once", None, ValueError("no"), 0.0),
    ("by default a lost connection waits", None, ConnectionResetError("reset"), 1.0),
    ("by default a server is heard", None, Refused(status_code=429, retry_after=20), 20.0),
    ("a number counts for every exception", 3, ValueError("no"), 6.0),
    ("a server that asks for more", (1, 30), Refused(retry_after=20), 20.0),
    ("nothing is longer than the longest", (1, 30), Refused(retry_after=3600), 30.0),
    ("zero never waits", 0, Refused(status_code=429, retry_after=20), 0.0),
    ("a function of the number", half_more, ValueError("no"), 2.5),
    ("a function of the exception", its_first_argument, ValueError(4), 4.0),
    ("a function that gives no number", its_first_argument, ValueError("no"), 0.0),
]


@each_row(("wait", "error", "seconds"), [case[1:] for case in WAITS])
def test_how_long_the_second_failure_waits(wait: Any, error: Exception, seconds: float) -> None:
    assert seconds_to_wait(wait, 2, error, lambda: 0.0) == seconds


def flaky(wait: Any, errors: Iterable[Exception], **options: Any) -> Any:
    left = iter(errors)

    @mulligan.retry(judge=in_euros, wait=wait, **options)
    async def bill(task: str, notes: Notes) -> str:
        if (error := next(left, None)) is not None:
            raise error
        return f"{notes} EUR"

    return bill


async def test_a_wait_is_asked_for_after_each_exception_and_not_after_the_last_try() -> None:
    asked = list[FailedTry]()

    def wait(failed: FailedTry) -> float:
        asked.append(failed)
        return 0.0

    errors = [ValueError("one"), KeyError("two"), OSError("three")]
    assert (await flaky(wait, errors[:2])("The total")).endswith("EUR")
    with pytest.raises(NotSolved):
        await flaky(wait, errors)("The total")
    assert [(failed.attempt_number, failed.exception) for failed in asked] == [(1, errors[0]), (2, errors[1])] * 2


async def test_a_wait_that_the_time_does_not_allow_ends_the_call_at_once_and_names_the_limit() -> None:
    error = Refused(status_code=429, retry_after=3000)
    with pytest.raises(NotSolved, match=r"over_budget: the next try must wait 3e\+03 seconds, but only .* are left"):
        await flaky((1, 5000), [error], limits={"seconds": 60})("The total")

    @mulligan.retry(judge=in_euros, wait=(1, 5000), limits={"seconds": 60})
    def bill(task: str, notes: Notes) -> str:
        raise error

    with pytest.raises(NotSolved, match="over_budget: the next try must wait"):
        bill("The total")


async def test_a_wait_can_be_cancelled() -> None:
    import asyncio

    begun = asyncio.Event()

    def wait(failed: FailedTry) -> float:
        begun.set()
        return 1000.0

    task = asyncio.create_task(flaky(wait, [ValueError("no")])("The total"))
    await asyncio.wait_for(begun.wait(), 30)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(task, 30)


# --- exceptions that say nothing about the answer -------------------------------------------------------------------

RateLimitError = type("RateLimitError", (Exception,), {})
APIConnectionError = type("APIConnectionError", (Exception,), {})
TRANSIENT: list[tuple[Exception, bool]] = [
    (ConnectionResetError("reset"), True),
    (TimeoutError("the socket"), True),
    (RateLimitError("429"), True),
    (APIConnectionError("gone"), True),
    (httpx.ReadTimeout("slow"), True),
    (httpx.HTTPStatusError("", request=response(500).request, response=response(502)), True),
    (Refused(status_code=529), True),
    (Refused(status_code="429"), True),
    (Refused(status=400, response={"Error": {"Code": "ThrottlingException"}}), True),
    (Refused(code=lambda: Refused(name="UNAVAILABLE")), True),
    (Refused(code=max), False),
    (Refused(code="ENOENT"), False),
    (OSError(errno.EHOSTUNREACH, "No route to host"), True),
    (OSError(errno.ENOENT, "No such file"), False),
    (OSError(errno.ENOSPC, "No space left on device"), True),
    (OSError(errno.EMFILE, "Too many open files"), True),
    (socket.gaierror(socket.EAI_AGAIN, "try again"), True),
    (Refused(response={"ResponseMetadata": {"HTTPStatusCode": 503}}), True),
    (raised_from(ConnectionRefusedError("no")), True),
    (ExceptionGroup("all", [ConnectionResetError(), TimeoutError()]), True),
    (ExceptionGroup("one", [ConnectionResetError(), ValueError("no currency")]), False),
    (while_handling(ConnectionResetError("reset")), False),
    (Refused(status_code=400), False),
    (Refused(status_code=404), False),
    (Refused(status_code=10**5000), False),
    (ValueError("no currency"), False),
    (FileNotFoundError("bill.txt"), False),
    (AssertionError("no"), False),
]


@each_row(("error", "transient"), TRANSIENT)
def test_which_exceptions_say_nothing_about_the_answer(error: Exception, transient: bool) -> None:
    assert is_transient(error) is transient


def test_a_rate_limit_is_no_check_that_failed_and_teaches_nothing() -> None:
    read, reflected = list[str](), list[int]()

    def lesson(episode: mulligan.Episode) -> str:
        reflected.append(len(episode.trials))
        return "Write the currency."

    @mulligan.retry(judge=in_euros, tries=4, wait=0, bank="billing", reflect=lesson)
    def bill(task: str, notes: Notes) -> str:
        read.append(str(notes))
        if notes.trial in (1, 3):
            raise RateLimitError("429 Too many requests") if notes.trial == 1 else ConnectionResetError("reset by peer")
        return "12" if notes.trial == 2 else "12 EUR"

    result = bill.run("Write the total of 5 and 7.")
    assert (result.value, result.episode.solved) == ("12 EUR", True)
    assert read[1] == ""  # nothing to say
    assert "no currency in '12'" in read[2]
    assert read[3] == read[2]
    assert reflected == [2]
    assert [trial.feedback and trial.feedback.passed for trial in result.episode.trials] == [None, False, None, True]
    assert "reset by peer" in (result.episode.trials[2].feedback or mulligan.Feedback(None)).text  # the record has it

    @mulligan.retry(judge=in_euros, bank="billing")
    def again(task: str, notes: Notes) -> str:
        read.append(str(notes))
        return "15 EUR"

    again("Write the total of 8 and 7.")
    assert "no currency" in read[-1]
    assert "429" not in read[-1]
    assert "reset" not in read[-1]


def test_a_judge_that_meets_a_rate_limit_has_no_verdict() -> None:
    read = list[str]()

    def judge(answer: str) -> bool:
        if len(read) == 1:
            raise RateLimitError("429 Too many requests")
        return True

    @mulligan.retry(judge=judge, wait=0)
    def bill(task: str, notes: Notes) -> str:
        read.append(str(notes))
        return f"{len(read)} EUR"

    result = bill.run("The total")
    assert (result.value, read) == ("2 EUR", ["", ""])
    assert [trial.feedback and trial.feedback.passed for trial in result.episode.trials] == [None, True]


# --- what of an exception the next try reads ------------------------------------------------------------------------


def noted(error: Exception, *notes: str) -> Exception:
    for note in notes:
        error.add_note(note)
    return error


def deep(levels: int) -> Exception:
    error: Exception = ValueError("no currency behind the total")
    for level in range(levels):
        error = ExceptionGroup(f"group {level}", [error]) if level % 2 else raised_from(error)
    return error


TOLD = [
    raised_from(ValueError("no currency behind the total")),
    while_handling(KeyError("no currency behind the total")),
    noted(RuntimeError("the tool failed"), "no currency behind the total"),
    ExceptionGroup("unhandled errors", [ValueError("no currency behind the total"), KeyError("x")]),
    ExceptionGroup("outer", [ExceptionGroup("inner", [raised_from(ValueError("no currency behind the total"))])]),
    raised_from(noted(RuntimeError("x"), "first", "no currency behind the total")),
    deep(6),
]


@each_row("error", TOLD)
def test_what_an_exception_carries_reaches_the_next_try(error: Exception) -> None:
    read = list[str]()

    @mulligan.retry(judge=in_euros, record=False)
    def bill(task: str, notes: Notes) -> str:
        read.append(str(notes))
        if not notes:
            raise error
        return "12 EUR"

    assert bill("The total") == "12 EUR"
    assert "no currency behind the total" in read[1]

    @mulligan.retry(judge=lambda answer: refuse(answer, error), record=False)
    def judged(task: str, notes: Notes) -> str:
        read.append(str(notes))
        return "12 EUR" if notes else "12"

    assert judged("The total") == "12 EUR"
    assert "no currency behind the total" in read[3]


def test_what_the_caller_was_handling_is_no_part_of_the_exception() -> None:
    read = list[str]()

    @mulligan.retry(judge=in_euros, record=False)
    def bill(task: str, notes: Notes) -> str:
        read.append(str(notes))
        if notes.trial == 1:
            raise ValueError("no total")
        return "12 EUR" if notes.trial == 3 else "12"

    try:
        raise KeyError("the caller's own")
    except KeyError:
        assert bill("The total") == "12 EUR"
    assert "no total" in read[1]
    assert "the caller's own" not in "".join(read)


def refuse(answer: str, error: Exception) -> None:
    if not answer.endswith("EUR"):
        raise error


ERRORS = st.recursive(
    st.builds(ValueError, st.text(max_size=2000))
    | st.builds(noted, st.builds(OSError, st.text()), st.text(max_size=900)),
    lambda inner: (
        st.builds(ExceptionGroup, st.text(max_size=50), st.lists(inner, min_size=1, max_size=12))
        | st.builds(raised_from, inner)
        | st.builds(while_handling, inner)
    ),
    max_leaves=40,
)


@pytest.mark.slow
@given(ERRORS)
def test_the_text_of_an_exception_is_bounded(error: Exception) -> None:
    text = error_text(error)
    assert text.startswith(type(error).__name__)
    assert len(text) <= LONGEST_TEXT + 50


def test_the_text_of_a_long_chain_has_both_ends_and_of_a_circle_an_end() -> None:
    chain: Exception = ValueError("the first cause")
    for level in range(3000):
        chain = raised_from(chain)
        chain.args = (f"level {level}",)
    assert "level 2999" in error_text(chain)
    assert "the first cause" in error_text(chain)
    one, other = ValueError("one"), ValueError("other")
    one.__cause__, other.__cause__ = other, one
    assert error_text(one) == "ValueError: one\ncaused by ValueError: other"
    assert len(error_text(ExceptionGroup("many", [ValueError(f"{n}") for n in range(10_000)])).splitlines()) < 20


def grouped_with_its_member(how: str) -> Exception:
    one = ValueError("one")
    group = ExceptionGroup("all", [one, one] if how == "twice" else [one])
    group.__context__ = one if how in ("context", "circle") else None
    one.__cause__ = group if how == "circle" else None
    if how == "cause":
        group.__cause__ = one
    return group


class Unspeakable:
    def __str__(self) -> str:
        raise RuntimeError("no words")


def annotated(notes: object) -> Exception:
    error = ValueError("one")
    error.__dict__["__notes__"] = notes
    return error


@each_row(
    ("error", "text"),
    [
        (
            grouped_with_its_member("twice"),
            "ExceptionGroup: all (2 sub-exceptions)\n- ValueError: one\n- ValueError: one",
        ),
        (
            grouped_with_its_member("context"),
            "ExceptionGroup: all (1 sub-exception)\n- ValueError: one\nwhile handling ValueError: one",
        ),
        (
            grouped_with_its_member("cause"),
            "ExceptionGroup: all (1 sub-exception)\n- ValueError: one\ncaused by ValueError: one",
        ),
        (
            grouped_with_its_member("circle"),
            "ExceptionGroup: all (1 sub-exception)\n- ValueError: one\nwhile handling ValueError: one",
        ),
        (annotated(7), "ValueError: one"),
        (annotated(["two", Unspeakable()]), "ValueError: one\ntwo\n"),
        (ValueError(Unspeakable()), "ValueError"),
    ],
)
def test_every_exception_has_a_text(error: Exception, text: str) -> None:
    assert error_text(error) == text
    assert error_text(error, outer=error) == text


def test_a_group_around_the_exception_that_was_handled_is_a_failed_try() -> None:
    read = list[str]()

    @mulligan.retry(judge=in_euros, failures=ValueError)
    def bill(task: str, notes: Notes) -> str:
        read.append(str(notes))
        if notes.trial == 1:
            raise grouped_with_its_member("context")
        return "12 EUR"

    assert bill("The total") == "12 EUR"
    assert "- ValueError: one" in read[1]


def test_a_group_of_failures_is_a_failed_try() -> None:
    tried = list[int]()

    @mulligan.retry(judge=in_euros, failures=ValueError)
    def bill(task: str, error: Exception, notes: Notes) -> str:
        tried.append(notes.trial)
        if notes.trial == 1:
            raise error
        return "12 EUR"

    assert (
        bill("The total", ExceptionGroup("two", [ValueError("a"), ExceptionGroup("b", [ValueError("c")])])) == "12 EUR"
    )
    with pytest.raises(ExceptionGroup):
        bill("The total", ExceptionGroup("two", [ValueError("a"), KeyError("b")]))
    assert tried == [1, 2, 1]


# --- what can be read only once -------------------------------------------------------------------------------------


class Upload:
    """As temporary files and uploads are: it wraps a file, and is none by its class."""

    def __init__(self) -> None:
        self.file = io.BytesIO(b"1\n2\n")

    def read(self) -> bytes:
        return self.file.read()

    def __iter__(self) -> Iterator[bytes]:
        return iter(self.file)


def stream_reader() -> Any:
    return codecs.getreader("utf-8")(io.BytesIO(b"1\n2\n"))


ROWS: list[tuple[str, Callable[[], Any], Callable[[Any], Any], bool]] = [
    ("an upload", Upload, list, True),
    ("a reader of codecs", stream_reader, list, True),
    ("an upload that is not read", Upload, id, False),
    ("a generator", lambda: (n for n in [1, 2]), list, True),
    ("map", lambda: map(abs, [1, 2]), list, True),
    ("an iterator", lambda: iter([1, 2]), list, True),
    ("a file", lambda: io.StringIO("1\n2\n"), lambda file: file.read(), True),
    ("a list of generators", lambda: [(n for n in [1, 2])], lambda rows: list(rows[0]), True),
    ("a list", lambda: [1, 2], list, False),
    ("a range", lambda: range(2), list, False),
    ("a generator that is not read", lambda: (n for n in [1, 2]), lambda rows: [1], False),
    ("a file that is not read", lambda: io.StringIO("1"), lambda file: "", False),
]


@pytest.mark.parametrize(("rows", "read", "used_up"), [case[1:] for case in ROWS], ids=[case[0] for case in ROWS])
def test_an_argument_that_the_first_try_used_up_is_named_once(
    rows: Callable[[], Any],
    read: Callable[[Any], Any],
    used_up: bool,
    caplog: pytest.LogCaptureFixture,
    request: pytest.FixtureRequest,
) -> None:
    def total(task: str, rows: Any, notes: Notes) -> object:
        return read(rows)

    total.__qualname__ = f"total of {request.node.name}"  # a warning is logged once for a function
    retried: Any = mulligan.retry(judge=lambda answer: False, tries=3, record=False)(total)
    retried("Add them", rows())
    retried("Add them", rows=rows())
    said = [record.message for record in caplog.records if "used up the argument" in record.message]
    assert len(said) == used_up
    assert not used_up or "'rows'" in said[0]


RESULTS: list[tuple[str, Callable[[], Any], Callable[[Any], list[Any]]]] = [
    ("a generator", lambda: (n for n in [1, 2]), list),
    ("map", lambda: map(abs, [-1, 2]), list),
    ("zip", lambda: (a for (a,) in zip([1, 2], strict=True)), list),
    ("itertools", lambda: itertools.chain([1], [2]), list),
    ("a generator in a tuple", lambda: ((n for n in [1, 2]), "meta"), lambda answer: list(answer[0])),
    ("a generator in a dict", lambda: {"rows": (n for n in [1, 2])}, lambda answer: list(answer["rows"])),
    ("a file", lambda: io.StringIO("1\n2\n"), lambda answer: [int(line) for line in answer]),
    ("an upload", Upload, lambda answer: [int(line) for line in answer]),
]


@each_row(("make", "read"), [case[1:] for case in RESULTS])
def test_a_result_that_the_judge_reads_reaches_the_caller_whole(
    make: Callable[[], Any], read: Callable[[Any], list[Any]]
) -> None:
    @mulligan.retry(judge=lambda answer: read(answer) == [1, 2], tries=1, notes=None)
    def rows(task: str) -> object:
        return make()

    result = rows.run("Count")
    assert result.episode.solved
    assert read(result.value) == [1, 2]


class Stream:
    """As a provider's: an iterator that has more to it than its items."""

    def __iter__(self) -> Iterator[int]:
        return self

    def __next__(self) -> int:
        raise StopIteration


async def items() -> AsyncIterator[int]:
    yield 1


@pytest.mark.parametrize("make", [Stream, items], ids=["an iterator of a client", "an asynchronous generator"])
def test_a_result_that_cannot_be_read_twice_is_refused(make: Callable[[], Any]) -> None:
    @mulligan.retry(judge=lambda answer: True, notes=None)
    def rows(task: str) -> object:
        return make()

    with pytest.raises(InvalidInput, match=r"returned an? .*, which can be read only once: the judge would use it up"):
        rows("Count")

    @mulligan.retry  # nothing would read it
    def unjudged(task: str) -> object:
        return make()

    assert unjudged("Count") is not None
