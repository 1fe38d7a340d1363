"""The human evaluator, over real pseudo-terminals."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator

import pytest
from terminals import seen, terminal

from mulligan.core.errors import GaveUp
from mulligan.core.records import Artifact, Attempt, Episode, Feedback, Task, Trial
from mulligan.evaluators.human import Human, Terminal, printable

EPISODE = Episode("e.1", Task("t"), trials=(Trial(1, Attempt("first")), Trial(2, Attempt("def f(): ...\x1b[2J"))))


@pytest.fixture
def ends() -> Iterator[tuple[int, int]]:
    """(the person's end, the program's end) of a pseudo-terminal."""
    with terminal() as both:
        yield both


async def judged(ends: tuple[int, int], *lines: str, until: str = "wrong: ") -> Feedback:
    person, program = ends
    verdict = asyncio.ensure_future(Human(ask=Terminal(program, program).ask).evaluate(EPISODE))
    for line in lines:
        await seen(person, until)
        os.write(person, line.encode())
    return await asyncio.wait_for(verdict, 10)


async def test_pass(ends: tuple[int, int]) -> None:
    assert await judged(ends, "Pass.\n") == Feedback(True, "A person let it pass.", source="human")


async def test_what_is_wrong_is_the_feedback(ends: tuple[int, int]) -> None:
    assert await judged(ends, "the café is empty\n") == Feedback(False, "the café is empty", source="human")


async def test_lines_pasted_together_are_one_answer(ends: tuple[int, int]) -> None:
    told = await judged(ends, "two faults:\nno docstring\nno tests\n")
    assert told.text == "two faults:\nno docstring\nno tests"


async def test_an_unclear_answer_is_asked_for_again(ends: tuple[int, int]) -> None:
    assert (await judged(ends, "\n", "yes\n", "no\n", "it hangs\n")).text == "it hangs"


@pytest.mark.parametrize("said", ["Give up\n", "\x04"])
async def test_giving_up_ends_the_episode_without_a_verdict(ends: tuple[int, int], said: str) -> None:
    with pytest.raises(GaveUp, match="gave no verdict"):
        await judged(ends, said)


async def test_a_terminal_that_closes_gives_up(ends: tuple[int, int]) -> None:
    person, program = ends
    asking = asyncio.ensure_future(Human(ask=Terminal(program, program).ask).evaluate(EPISODE))
    await seen(person, "wrong: ")
    os.close(person)
    with pytest.raises(GaveUp, match="gave no verdict"):
        await asyncio.wait_for(asking, 10)


async def test_the_question_shows_the_newest_attempt_without_control_characters(ends: tuple[int, int]) -> None:
    person, program = ends
    asking = asyncio.ensure_future(Human(ask=Terminal(program, program).ask).evaluate(EPISODE))
    shown = await seen(person, "wrong: ")
    assert "Trial 2:\r\n\r\ndef f(): ...\\x1b[2J\r\n" in shown
    assert "first" not in shown
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(asking, 10)


async def test_waiting_holds_nobody_up_and_can_be_cancelled(ends: tuple[int, int]) -> None:
    person, program = ends
    terminal = Terminal(program, program)
    first = asyncio.ensure_future(terminal.ask("first? "))
    await seen(person, "first? ")
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(first, 10)
    second = asyncio.ensure_future(terminal.ask("second? "))
    await seen(person, "second? ")
    os.write(person, b"for the second\n")
    assert await asyncio.wait_for(second, 10) == "for the second\n"


async def test_where_the_work_is_is_reported() -> None:
    shown: list[str] = []

    async def ask(question: str) -> str:
        shown.append(question)
        return "pass"

    attempt = Attempt("diff", artifacts=(Artifact("commit", "abc", "/some/tree"), Artifact("commit", "def")))
    await Human(ask=ask).evaluate(Episode("e.1", Task("t"), trials=(Trial(1, attempt),)))
    assert shown == ["\nTrial 1:\n\ndiff\n\nIt is in /some/tree\n\npass, give up, or what is wrong: "]


def test_printable() -> None:
    assert printable("tab\tline\n中文 é") == "tab\tline\n中文 é"
    assert printable("\x1b]0;x\x07\r\x9b\u202e") == "\\x1b]0;x\\x07\\r\\x9b\\u202e"


CHILD = """
import asyncio, json, os, sys
if len(sys.argv) > 1:
    os.open(sys.argv[1], os.O_RDWR)  # the first terminal that a session leader opens becomes its own
from mulligan.core.errors import InvalidInput
from mulligan.core.records import Attempt, Episode, Task, Trial
from mulligan.evaluators.human import Human
try:
    feedback = asyncio.run(Human().evaluate(Episode("e.1", Task("t"), trials=(Trial(1, Attempt("42")),))))
except InvalidInput as error:
    sys.exit(f"refused: {error}")
print(json.dumps([feedback.passed, feedback.text, sys.stdin.read() if len(sys.argv) > 1 else ""]))
"""


def child(*arguments: str, stdin: int, stderr: int = subprocess.PIPE) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", CHILD, *arguments]
    return subprocess.Popen(command, stdin=stdin, stdout=subprocess.PIPE, stderr=stderr, start_new_session=True)


async def test_the_answer_comes_from_standard_input_and_the_question_goes_to_standard_error(
    ends: tuple[int, int],
) -> None:
    person, program = ends
    with child(stdin=program, stderr=program) as process:
        assert "42" in await seen(person, "wrong: ")
        os.write(person, b"not 42\n")
        out, _ = process.communicate(timeout=10)
    assert json.loads(out) == [False, "not 42", ""]


async def test_with_input_and_error_redirected_the_terminal_is_found_all_the_same(ends: tuple[int, int]) -> None:
    person, program = ends
    with child(os.ttyname(program), stdin=subprocess.PIPE) as process:
        assert "42" in await seen(person, "wrong: ")
        os.write(person, b"pass\n")
        out, _ = process.communicate(b"the piped task", timeout=10)
    assert json.loads(out) == [True, "A person let it pass.", "the piped task"]


def test_without_a_terminal_it_is_refused_before_anything_runs() -> None:
    with child(stdin=subprocess.DEVNULL) as process:
        _, said = process.communicate(timeout=10)
    assert process.returncode == 1
    assert said.decode().startswith("refused: The evaluator human asks at a terminal, but there is no terminal here.")
