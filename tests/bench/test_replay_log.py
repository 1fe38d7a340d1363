"""A published log runs through the whole engine with the log as the model, and what parts is said."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from each_row import each_row

from mulligan.bench.harness.replay import (
    LogModel,
    Published,
    first_difference,
    hint_of,
    read_log,
    replay_log,
)
from mulligan.bench.harness.running import resume_benchmark
from mulligan.cli.main import main
from mulligan.core.errors import InvalidInput, ModelError
from mulligan.core.loop import scope
from mulligan.core.questions import Message, Question
from mulligan.core.records import Episode
from mulligan.store.sqlite import SqliteStore

Command: TypeAlias = Callable[..., tuple[int, str, str]]
PUBLISHED = Path(__file__).parents[3] / "shared/data/replay/mbpp-gpt4-20-episodes.json"
GOOD = "def f(x):\n    return x + 1"
HIDDEN = "def check(candidate):\n    assert candidate(1) == 2\n"
FAILED = "Tested passed:\n\nTests failed:\nassert f(1) == 2 # output: "


def entry(name: str, *codes: str, outputs: tuple[str, ...] = (), solved: bool = True, **other: Any) -> dict[str, Any]:
    made: dict[str, Any] = {"name": name, "prompt": "def f(x):\n    '''Add 1.'''\n", "entry_point": "f"}
    made |= {"internal_tests": ["assert f(1) == 2"], "implementations": list(codes), "hidden_test": HIDDEN}
    made |= {"feedback": [FAILED + text for text in outputs], "reflections": ["why"] * len(outputs), "solved": solved}
    return {**made, **other}


def written(folder: Path, *entries: object) -> Path:
    file = folder / "log.json"
    file.write_text(json.dumps(list(entries)), encoding="utf-8")
    return file


async def replayed(folder: Path, *entries: object, **options: Any) -> tuple[dict[str, list[Any]], list[Episode]]:
    """Where each case parts, and the episodes as they were recorded."""
    store = SqliteStore(folder / "e.db")
    found = await replay_log(written(folder, *entries), store=store, parallel=2, **options)
    episodes = [await store.load(one.episode) for one in found.compared]
    await store.close()
    return {one.case: [parting.where for parting in one.partings] for one in found.compared}, episodes


@pytest.mark.slow
async def test_what_a_log_holds_comes_out_again(tmp_path: Path) -> None:
    entries = [
        entry("at once", GOOD),
        entry("twice", "def f(x):\n    return x", GOOD, outputs=("1",)),
        entry("exit", "import sys\ndef f(x):\n    sys.exit(3)", GOOD, outputs=("3",)),
        entry("missing", "class A: pass", GOOD, outputs=("name 'f' is not defined",)),
        entry("indented", "    def f(x): pass", "", GOOD, outputs=("unexpected indent (<string>, line 2)", "name 'f' is not defined")),
        entry("fences", "def f(x):\r\n    '''\n```\n'''\n    return '```python'", GOOD, outputs=("```python",)),
        entry("halves", "def f(x):\n    return 'ü\ud800' * 50000", GOOD, outputs=("ü\\ud800" * 50000,)),
        entry("reads", "def f(x):\n    return input()", GOOD, outputs=("EOF when reading a line",)),
        entry("typing", "def f(x: List[int]) -> int:\n    return x + 1"),
        entry("hidden fails", "def f(x):\n    return 2", solved=True, internal_tests=["# assert", "assert f(9) == 2"] * 2),
        entry("again", GOOD),
        entry("again", GOOD, hidden_test=f"{HIDDEN}\ncheck(f)\n", prompt=""),
        entry("used up", *["def f(x):\n    return x"] * 5, outputs=("1",) * 4, solved=False),
        entry("lucky", *["def f(x):\n    return 2"] * 5, internal_tests=["assert f(1) == 3"], solved=True, feedback=[FAILED.replace("2 #", "3 #") + "2"] * 4, reflections=["", "```\nx\n```", "a", "b"]),
        entry("again#2", GOOD),
        entry("untested", "def f(x):\n    return 7", internal_tests=[], solved=False),
        entry("no words", "def f(x):\n    raise ValueError", GOOD, outputs=("",), feedback=[FAILED.rstrip()]),
        entry("imported before", "import math\ndef f(x):\n    return math.floor(x)", "def f(x):\n    return math.ceil(x) + 1", outputs=("1",)),
        entry("bodies", "    return x", "    return x + 1\n", outputs=("1",)),
    ]  # fmt: skip
    parted, episodes = await replayed(tmp_path, *entries)
    assert parted == {one: [] for one in parted}
    assert len(parted) == len(entries)
    assert {"again", "again#2", "again#2#2"} <= set(parted)
    assert [len(episode.trials) for episode in episodes] == [1, 2, 2, 2, 3, 2, 2, 2, 1, 1, 1, 1, 5, 5, 1, 1, 2, 2, 2]
    assert episodes[1].reflections[0].text == "why"
    assert episodes[12].stop is not None
    assert episodes[12].stop.reason == "exhausted"


@pytest.mark.slow
async def test_where_they_part_is_reported(tmp_path: Path) -> None:
    entries = [
        entry("verdict", GOOD, solved=False),
        entry("text", "def f(x):\n    return x", GOOD, outputs=("7",)),
        entry("short", "def f(x):\n    return x"),
        entry("long", GOOD, GOOD, outputs=("1",)),
        entry("no reflection", "def f(x):\n    return x", GOOD, outputs=("1",), reflections=[]),
        entry("no hidden test", GOOD, hidden_test="nonsense here"),
        entry("odd test", GOOD, internal_tests=["this asserts nothing", "assert f(1) == 2"]),
    ]
    parted, _ = await replayed(tmp_path, *entries)
    assert parted == {
        "verdict": ["verdict"],
        "text": ["feedback of trial 1"],
        "short": ["course"],
        "long": ["feedback of trial 1", "trials"],
        "no reflection": ["course"],
        "no hidden test": ["verdict"],
        "odd test": ["tests"],
    }


@pytest.mark.slow
async def test_the_log_is_played_as_long_as_it_was_made(tmp_path: Path) -> None:
    one = entry("three", *["def f(x):\n    return x"] * 3, outputs=("1", "1"), solved=False)
    assert (await replayed(tmp_path, one, trials=3))[0] == {"three": []}
    assert (await replayed(tmp_path, one))[0] == {"three": ["course"]}
    lasting = [entry(str(n), *["def f(x):\n    return x"] * n, outputs=("1",) * (n - 1), solved=False) for n in (5, 6)]
    parted, episodes = await replayed(tmp_path, *lasting)
    assert parted == {"5": [], "6": []}
    assert [len(episode.trials) for episode in episodes] == [5, 6]


async def test_where_the_log_ends_too_early_the_test_that_fails_is_named(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "e.db")
    found = await replay_log(written(tmp_path, entry("short", "def f(x):\n    return x")), store=store)
    await store.close()
    (parting,) = found.compared[0].partings
    assert "(--trials 1); of the tests that fail here the first is: assert f(1) == 2 # output: 1" in parting.hint


@pytest.mark.slow
async def test_all_of_the_time_may_go_into_one_hidden_test(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mulligan.bench.harness.replay.HIDDEN_SECONDS", 2.0)  # of which a fourth would be 0.5
    code = "import time\ndef f(x):\n    time.sleep(1.0 if x == 5 else 0)\n    return x + 1"
    asserts = "".join(f"    assert candidate({n}) == {n + 1}\n" for n in range(2, 6))
    parted, _ = await replayed(tmp_path, entry("slow", code, hidden_test=f"def check(candidate):\n{asserts}"))
    assert parted == {"slow": []}


@pytest.mark.parametrize(
    ("content", "match"),
    [
        ("[", "it is not JSON"),
        ("{}", "at least one episode"),
        ("[]", "at least one"),
        ("[1]", "entry 1: this must be an object"),
        ([{"name": "a"}], r"entry 1 \(a\): the key 'prompt' is missing"),
        ([entry("a", GOOD), entry("b", 7)], r"entry 2 \(b\): item 1 of 'implementations' must be a string, not int"),  # pyright: ignore[reportArgumentType]
        ([entry("a")], "'implementations' is empty"),
        ([entry("a", GOOD, solved="yes")], "'solved' must be true or false"),  # pyright: ignore[reportArgumentType]
        ([entry("a", GOOD, prompt=None)], "'prompt' must be a string, not NoneType"),
        ([entry("a", GOOD, internal_tests="assert f(1)")], "'internal_tests' must be a list"),
        ([entry("a", GOOD, outputs=("1", "2"))], "'feedback' has 2 strings for 1 implementation"),
        ([entry("a", GOOD, GOOD)], "'feedback' must have 1 string, one per failure, not 0"),
    ],
)
def test_a_bad_file_is_refused_by_entry_and_key(content: object, match: str, tmp_path: Path) -> None:
    file = tmp_path / "log.json"
    file.write_text(content if isinstance(content, str) else json.dumps(content))
    with pytest.raises(InvalidInput, match=match):
        read_log(file)


async def test_the_log_fails_loudly_when_it_is_asked_for_more() -> None:
    log = Published("a", "a", "", "f", ("assert f(1)",), (GOOD,), (), (), HIDDEN, True)
    model, question = LogModel("log:a", log, "0" * 64), Question((Message("user", "?"),))
    with scope("trial.1", "act"):
        assert (await model.ask(question)).content == f"```python\n{GOOD}\n```"
    with scope("trial.1", "evaluate", "verdict#1"):
        assert "assert f(1)" in (await model.ask(question)).content
    for place, said in ((("trial.2", "act"), "1 implementations"), (("trial.1", "reflect"), "0 reflections")):
        with scope(*place), pytest.raises(ModelError, match=said):
            await model.ask(question)
    with pytest.raises(ModelError, match="within a trial"):
        await model.ask(question)


@each_row(
    ("theirs", "ours", "said"),
    [
        ("a # output: <A at 0x7f>", "a # output: <A at 0x8e>", "address"),
        ("a # output: {1, 'b'}", "a # output: {'b', 1}", "another order"),
        ("a # output: 3", "a # output: TIMEOUT", "time-out"),
        (
            "a # output: local variable 'y' referenced before assignment",
            "a # output: cannot access local variable 'y' where it is not associated with a value",
            "message differs between versions",
        ),
        (
            "a # output: __init__() missing 1 …",
            "a # output: A.__init__() missing 1 …",
            "message differs between versions",
        ),
        (
            "a # output: invalid syntax (<string>, line 3)",
            "a # output: expected ':' (<string>, line 3)",
            "message differs between versions",
        ),
        ("a # output: 3", "a # output: name 'math' is not defined", "share one namespace"),
        ("a # output: 'PropagatingThread' object", "a # output: TIMEOUT", "accident"),
        ("a # output: 3", "a # output: 4", ""),
        ("a", "", ""),
    ],
)
def test_what_may_have_caused_it(theirs: str, ours: str, said: str) -> None:
    hint = hint_of(f"same\n{theirs}", f"same\n{ours}")
    assert said in hint
    assert bool(said) == bool(hint)


def test_of_long_lines_the_part_that_differs_is_shown() -> None:
    theirs, ours = first_difference("x" * 5000 + "a" + "y" * 5000, "x" * 5000 + "b" + "y" * 5000)
    assert "xa" in theirs
    assert "xb" in ours
    assert max(len(theirs), len(ours)) < 600


@pytest.fixture
def command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Command:
    def run(*arguments: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as ended:
            main(("bench", "replay", *arguments))
        captured = capsys.readouterr()
        assert isinstance(ended.value.code, int)
        return ended.value.code, captured.out, captured.err

    return run


@pytest.mark.slow
def test_the_command_reports_in_three_forms(tmp_path: Path, command: Command) -> None:
    file = written(tmp_path, entry("fine", GOOD), entry("text", "def f(x):\n    return x", GOOD, outputs=("7",)))
    ended = {form: command(str(file), "--format", form) for form in ("json", "md", "table")}
    assert {status for status, _, _ in ended.values()} == {1}
    found = json.loads(ended["json"][1])
    assert (found["episodes"], found["agree"], [one["case"] for one in found["parted"]]) == (2, 1, ["text"])
    for form in ("md", "table"):
        out = ended[form][1]
        assert "1 of 2 agree" in out
        assert "log:    assert f(1) == 2 # output: 7" in out
        assert "replay: assert f(1) == 2 # output: 1" in out
    assert ended["md"][2].endswith(": 2 episodes\n")


@pytest.mark.slow
def test_the_status_says_whether_all_agree(tmp_path: Path, command: Command) -> None:
    status, out, err = command(str(written(tmp_path, entry("fine", GOOD))), "--quiet", "--parallel", "1")
    assert (status, err) == (0, "")
    assert "1 of 1 agree" in out
    run = out.rpartition(" ")[2].strip()
    with pytest.raises(InvalidInput, match=r"replay it again: mulligan bench replay .*log\.json"):
        asyncio.run(resume_benchmark(run))
    status, _, err = command(str(tmp_path / "none.json"))
    assert status == 2
    assert "none.json cannot be read" in err


@pytest.mark.slow
@pytest.mark.skipif(not PUBLISHED.exists(), reason="needs ../shared/data")
async def test_the_published_episodes_agree(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "e.db")
    found = await replay_log(PUBLISHED, store=store, parallel=2)
    await store.close()
    assert [(one.case, one.partings) for one in found.compared if one.partings] == []
    assert (found.agreeing, sum(one.trials for one in found.compared)) == (20, 64)
