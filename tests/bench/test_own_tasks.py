"""A user's file of tasks from end to end: who judges in the loop, who afterwards, and what a resume rests on."""

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from mulligan.bench.commands import bench
from mulligan.bench.harness.running import resume_benchmark, run_benchmark
from mulligan.bench.own_tasks._task_file import read_tasks
from mulligan.core.errors import InvalidInput, JournalDiverged
from mulligan.core.records import Json
from mulligan.models.scripted import ScriptedModel
from mulligan.store.sqlite import SqliteStore

EXAMPLE = Path(__file__).parents[2] / "examples" / "bench"


def judged(passed: bool, wrong: str = "") -> Json:
    return {"reasoning": wrong or "It is right.", "passed": passed, "score": 10 if passed else 1, "wrong": wrong}


ANSWERS: list[Json] = [
    *(
        "Sydney",
        judged(False, "That is its largest city."),
        "Not Sydney: name the seat of parliament.",
        "Canberra",
        judged(True),
    ),
    "```python\ndef median(numbers):\n    return sorted(numbers)[len(numbers) // 2]\n```",
    "Of an even count of numbers the median is the mean of the two in the middle.",
    "```python\nfrom statistics import median\n```",
    *("3 July 2019", "July is to be a number: YYYY-MM-DD.", "2019-07-03"),
    *(
        "Iron rusts where oxygen reaches it.",
        "Iron rusts with water, too: name it.",
        "Iron rusts where oxygen and Water reach it.",
    ),
]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MULLIGAN_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def written(here: Path, text: str) -> str:
    (here / "mine.toml").write_text(text, encoding="utf-8")
    return "mine.toml"


async def run(here: Path, text: str, answers: list[Json], **options: Json) -> tuple[list[str], ScriptedModel]:
    """How each case ended, with its scores."""
    model, store = ScriptedModel(answers), SqliteStore(here / "runs.db")
    finished = await run_benchmark(written(here, text), model=model, store=store, **options)
    await store.close()
    return [f"{r.case} {r.status} {list(r.episodes[0].scores)}" for r in finished.results], model


@pytest.mark.slow
async def test_the_example_fails_and_is_mended_from_python(here: Path) -> None:
    model, store = ScriptedModel(ANSWERS), SqliteStore(here / "runs.db")
    finished = await run_benchmark(str(EXAMPLE / "mine.toml"), model=model, store=store)
    await store.close()
    assert [(result.case, result.status) for result in finished.results] == [
        (name, "solved") for name in ("capital", "median", "date", "rust")
    ]
    assert [result.episodes[0].scores for result in finished.results] == [(0.0, 1.0)] * 4


@pytest.mark.slow
def test_the_example_fails_and_is_mended_by_the_command(here: Path) -> None:
    (here / "script.jsonl").write_text("\n".join(map(json.dumps, ANSWERS)), encoding="utf-8")
    ran = CliRunner().invoke(bench, ["run", str(EXAMPLE / "mine.toml"), "--model", "scripted:script.jsonl"])
    assert ran.exit_code == 0, ran.output
    assert "4 of 4 solved" in ran.stdout
    assert "2 of 4: median: solved, 2 tries" in ran.stderr


ONE = '[[task]]\nprompt = "Capital of Australia?"\nanswer = "Canberra"\n'


async def test_the_answer_never_reaches_the_model_and_counts_more_than_its_judgement(here: Path) -> None:
    how, model = await run(here, ONE, ["Sydney", judged(True)])
    assert how == ["task-1 failed [0.0]"]
    lessons = ("Not Sydney.", "Sydney is too far north.", "It begins with another letter than Sydney.")
    answers = [said for lesson in lessons for said in ("Sydney", judged(False, "no"), lesson)]
    how, model = await run(here, ONE, answers, trials=3, strategy="reflexion")
    assert how == ["task-1 failed [0.0, 0.0, 0.0]"]
    assert not any("Canberra" in message.text for question in model.questions for message in question.messages)


async def test_a_declared_oracle_stops_the_loop_and_is_marked(here: Path) -> None:
    store, model = SqliteStore(here / "runs.db"), ScriptedModel(["Sydney", "Another city than Sydney.", "canberra"])
    finished = await run_benchmark(written(here, "[judge]\noracle = true\n" + ONE), model=model, store=store)
    (result,) = finished.results
    assert (result.status, result.episodes[0].scores) == ("solved", (0.0, 1.0))
    episode = await store.load(result.episodes[0].episode)
    assert [trial.feedback and trial.feedback.source for trial in episode.trials] == ["oracle", "oracle"]
    assert not any("Canberra" in message.text for question in model.questions for message in question.messages)
    await store.close()


@pytest.mark.slow
async def test_tests_drive_the_loop_and_count_where_nothing_is_hidden(here: Path) -> None:
    (here / "t.py").write_text("def test_it() -> None:\n    assert two() == 2\n")
    (here / "hidden.py").write_text("def test_type() -> None:\n    assert isinstance(two(), int)\n")
    task = '[[task]]\nid = "two"\nprompt = "Write two()."\ntests = "t.py"\n'
    code = ["def two():\n    return 3", "two() must return 2.", "def two():\n    return 2.0"]
    how, _ = await run(here, task, list(code))
    assert how == ["two solved [0.0, 1.0]"]
    how, model = await run(here, task + 'hidden_tests = "hidden.py"\n', list(code))
    assert how == ["two failed [1.0, 0.0]"], "3 is an int, and 2.0 is none"
    assert not any("isinstance" in message.text for question in model.questions for message in question.messages)


async def test_hidden_tests_alone_want_code_that_the_model_judges_itself(here: Path) -> None:
    (here / "hidden.py").write_text("def test_it() -> None:\n    assert two() == 2\n")
    task = '[[task]]\nprompt = "Write two()."\nhidden.tests = "hidden.py"\n'
    how, _ = await run(here, task, ["Here:\n```python\ndef two():\n    return 2\n```\n", judged(True)])
    assert how == ["task-1 solved [1.0]"]


async def test_a_check_finds_the_files_beside_its_tasks(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = here / "tasks"
    folder.mkdir()
    (folder / "check.py").write_text("import sys\nsys.exit('42' not in open(sys.argv[1]).read())")
    (folder / "mine.toml").write_text('[[task]]\nprompt = "Say 42."\ncheck = "python check.py {attempt}"\n')
    store, model = SqliteStore(here / "runs.db"), ScriptedModel(["41", "One more than 41.", "42"])
    finished = await run_benchmark("tasks/mine.toml", model=model, store=store)
    assert [result.status for result in finished.results] == ["solved"]
    monkeypatch.chdir(folder)
    again = await resume_benchmark(finished.run.id, model=model, store=store)
    assert again.results == finished.results
    (folder / "check.py").write_text("")
    with pytest.raises(JournalDiverged, match=r"data check\.py"):
        await resume_benchmark(finished.run.id, model=model, store=store)
    await store.close()


async def test_an_evaluator_of_the_user_judges_with_its_settings(here: Path) -> None:
    (here / "short.py").write_text(
        "from mulligan.core.records import Feedback\n"
        "class Short:\n"
        "    expects = 'text'\n"
        "    def __init__(self, *, words: int, note: str = '') -> None:\n"
        "        self.words, self.note = words, note\n"
        "    async def evaluate(self, episode):\n"
        "        said = episode.trials[-1].attempt.output\n"
        "        return Feedback(len(said.split()) <= self.words, self.note, source='short')\n"
    )
    (here / "note.txt").write_text("Too long, says the note.")
    task = '[judge]\nevaluator = "short.py"\nsettings = { words = 1 }\n[[task]]\nprompt = "Short!"\n'
    more = '[[task]]\nprompt = "Two words!"\nsettings = { words = 2, note = { file = "note.txt" } }\n'
    how, model = await run(here, task + more, ["a b", "Short: a alone.", "a", "a b c", "Two words, not a b c.", "a b"])
    assert how == ["task-1 solved [0.0, 1.0]", "task-2 solved [0.0, 1.0]"]
    assert "Too long, says the note." in model.questions[4].messages[-1].text


@pytest.mark.parametrize(
    ("strategy", "shown"),
    [
        ("evidence", {"Missing"}),
        ("evidence_and_reflexion", {"Missing", "LESSON"}),
        ("reflexion", {"LESSON"}),
        ("last_attempt", {"ATTEMPT", "Missing"}),
        ("last_attempt_and_reflexion", {"ATTEMPT", "Missing", "LESSON"}),
        ("none", set[str]()),
    ],
)
async def test_the_strategies_show_what_they_say(here: Path, strategy: str, shown: set[str]) -> None:
    def answer(question: object, sampling: object) -> str:
        text = str(question)
        return "LESSON: say 'right'." if "Lesson:" in text else "right" if len(model.questions) > 2 else "ATTEMPT"

    model, store = ScriptedModel(answer), SqliteStore(here / "runs.db")
    text = '[[task]]\nprompt = "Say right."\ncontains = "right"\n'
    finished = await run_benchmark(written(here, text), model=model, store=store, strategy=strategy, trials=3)
    await store.close()
    assert finished.results[0].status == "solved"
    last = model.questions[-1].messages[-1].text
    assert {word for word in ("ATTEMPT", "Missing", "LESSON") if word in last} == shown


async def test_simple_is_one_attempt_without_a_judge_in_the_loop(here: Path) -> None:
    how, model = await run(here, ONE, ["Canberra"], method="simple")
    assert (how, len(model.questions)) == (["task-1 solved [1.0]"], 1)


BAD = {
    'prompt = "x"\nanswer = "y"\nansver = 3': r"mine\.toml:4: No key of a task is called 'ansver'\. Did you mean 'answer'",
    'prompt = "x"': r"mine\.toml:1: the task 'task-1' has no judge",
    'answer = "y"': r"mine\.toml:1: The task has no prompt",
    'prompt = "x"\nprompt_file = "p.md"\nanswer = "y"': r"mine\.toml:3: prompt and prompt_file are both given",
    'prompt_file = "p.md"\nanswer = "y"': r"mine\.toml:2: The prompt file .*p\.md does not exist",
    'prompt = ""\nanswer = "y"': r"mine\.toml:2: prompt must be a non-empty string, not ''",
    'prompt = "x"\nanswer = true': r"mine\.toml:3: answer must be a non-empty string, not True",
    'prompt = "x"\nanswers = []': r"mine\.toml:3: answers is an empty list",
    'prompt = "x"\n\nanswers = ["y", 1979-05-27]': r"mine\.toml:4: answers must be a non-empty string, not datetime",
    'prompt = "x"\ntests = "t.py"': r"mine\.toml:3: The test file .*t\.py does not exist",
    'prompt = "x"\ntests = "empty.py"': r"mine\.toml:1: the task 'task-1': .*empty\.py",
    f'prompt = "x"\ntests = "{"t" * 300}.py"': r"mine\.toml:3: The test file .*t\.py does not exist",
    'prompt = "x"\ntests = "~nobody-of-this-name/t.py"': r"mine\.toml:3: The test file .*t\.py does not exist",
    'prompt = "x"\ntests = "t\\u0000.py"': r"mine\.toml:3: The test file .* does not exist",
    'prompt = "x"\nregex = "("': r"mine\.toml:1: the task 'task-1': regex: the pattern `\(` cannot be used",
    'prompt = "x"\ncheck = "no-such-program {attempt}"': r"mine\.toml:1: the task 'task-1': .*no-such-program",
    'prompt = "x"\ncheck = "python gone.py {attempt}"': r"mine\.toml:3: The check runs .*gone\.py, which does not exist",
    'prompt = "x"\ncheck = ""': r"mine\.toml:3: check must be a non-empty string, not ''\.$",
    'prompt = "x"\ncheck = "./gone {attempt}"': r"mine\.toml:3: The check runs .*gone, which does not exist",
    'prompt = "x"\nevaluator = "model_judge"\nsettings = { rubrik = "a" }': (
        r"mine\.toml:1: the task 'task-1': No setting of 'model_judge' is called 'rubrik'. Did you mean 'rubric'"
    ),
    'prompt = "x"\nhidden = { evaluator = "model_judge" }': r"mine\.toml:1: .*A hidden judge must work without a model",
    'prompt = "x"\ncontains = "a"\nregex = "b"': r"mine\.toml:4: contains and regex are both given",
    'prompt = "x"\nanswer = "a"\nhidden = { answer = "b" }': r"mine\.toml:4: answer and hidden are both given",
    'prompt = "x"\n[task.hidden]\nanswr = "b"': r"mine\.toml:4: No key of hidden in a task is called 'answr'",
    'prompt = "x"\nhidden = {}': r"mine\.toml:3: hidden has no judge: give it one of answer",
    'prompt = "x"\nanswer = "the"': r"mine\.toml:1: the task 'task-1': exact_match cannot compare 'the'",
    'prompt = "x"\nanswer = "a"\noracle = "yes"': r"mine\.toml:4: oracle must be true or false",
    'prompt = "x"\nregex = "a"\noracle = true': r"mine\.toml:4: With oracle = true, the answer is the judge in the loop: "
    r"omit regex",
    'prompt = "x"\nhidden = { regex = "a" }\noracle = true': r"mine\.toml:4: .* add an answer to the task",
    'prompt = "x"\nevaluator = "model_jugde"': r"mine\.toml:1: the task 'task-1': No judge is called 'model_jugde'\. Did you mean 'model_judge'",
    'prompt = "x"\nevaluator = "./gone.py"': r"mine\.toml:3: The plug-in file .*gone\.py does not exist",
    'prompt = "x"\nevaluator = "exact_match:y"': r"mine\.toml:3: Write the settings of exact_match as settings",
    'prompt = "x"\nanswer = "y"\nsettings = { a = 1 }': r"mine\.toml:4: settings need an evaluator",
    'prompt = "x"\nregex = "y"\nsettings = { at = 1979-05-27 }': r"mine\.toml:4: at must be a string, a number",
    'prompt = "x"\nregex = "y"\nsettings = { secs = 1 }': r"mine\.toml:1: the task 'task-1': No setting of 'regex'",
    'prompt = "x"\ncontains = "y"\noutput = "rust"': r"mine\.toml:4: output must be a string or code",
    'id = "a"\nprompt = "x"\nanswer = "y"\n[[task]]\nid = "a"\nprompt = "x"\nanswer = "y"': (
        r"mine\.toml:6: The task 'a' already exists: .*mine\.toml:1"
    ),
}


@pytest.mark.parametrize("text", BAD)
async def test_a_mistake_is_reported_with_its_line_before_anything_is_asked(here: Path, text: str) -> None:
    (here / "empty.py").write_text("")
    with pytest.raises(InvalidInput, match=BAD[text]):
        await run(here, f"[[task]]\n{text}\n", [])


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", r"mine\.toml has no task"),
        ("[[task]\n", r"mine\.toml is not valid TOML: .*line 1"),
        ("task = " + "1" * 5000, r"mine\.toml is not valid TOML: Exceeds the limit"),
        ("task = " + "[" * 5000, r"mine\.toml is not valid TOML: maximum recursion depth"),
        ("[task]\nprompt = 'x'", r"mine\.toml:1: Each task is a table \[\[task\]\]"),
        ("tasks = 1\n" + ONE, r"mine\.toml:1: No key of a file of tasks is called 'tasks'. Did you mean 'task'"),
        (ONE + '[judge]\nprompt = "x"', r"mine\.toml:5: No key of judge in a file of tasks is called 'prompt'"),
    ],
)
async def test_a_file_that_is_none_is_refused(here: Path, text: str, says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        await run(here, text, [])


async def test_a_check_can_be_a_long_program(here: Path) -> None:
    program = f"import sys; sys.exit('b' not in open(sys.argv[1]).read()) {'#' * 300}"
    check = f'python -c "{program}" {{attempt}}'
    results, _ = await run(here, f"[[task]]\nprompt = 'x'\ncheck = '''{check}'''\n", ["ab"])
    assert results == ["task-1 solved [1.0]"]


def test_a_line_of_tasks_ends_only_at_a_line_feed(here: Path) -> None:
    rows = [{"prompt": "one\u2028two\x85three", "answer": "4"}, {"prompt": "five", "answer": "6"}]
    file = here / "mine.jsonl"
    file.write_bytes("\r\n".join(json.dumps(row, ensure_ascii=False) for row in rows).encode())
    assert [entry.prompt for entry in read_tasks(file)] == [row["prompt"] for row in rows]
    file.write_text("\n" + "[" * 100_000)
    with pytest.raises(InvalidInput, match=r"mine\.jsonl:2: The line is not valid JSON"):
        read_tasks(file)


@pytest.mark.slow
async def test_what_a_task_rests_on_is_part_of_the_run(here: Path) -> None:
    shutil.copytree(EXAMPLE, here / "bench")
    (here / "bench" / "mine.toml").write_text(
        '[[task]]\nid = "p"\nprompt_file = "p.md"\nanswer = 3\n'
        '[[task]]\nid = "m"\nprompt = "median"\ntests = "tests/median.py"\nhidden_tests = "tests/median_hidden.py"\n'
    )
    (here / "bench" / "p.md").write_text("One and two?")
    model, store = ScriptedModel(["3", judged(True), "from statistics import median"]), SqliteStore(here / "runs.db")
    finished = await run_benchmark("bench/mine.toml", model=model, store=store)
    assert [result.status for result in finished.results] == ["solved", "solved"]
    for name in ("p.md", "tests/median.py", "tests/median_hidden.py", "mine.toml"):
        file = here / "bench" / name
        before = file.read_bytes()
        file.write_bytes(before + b"\n# changed\n")
        with pytest.raises(JournalDiverged, match=f"data {name}"):
            await resume_benchmark(finished.run.id, model=model, store=store)
        file.write_bytes(before)
    assert (await resume_benchmark(finished.run.id, model=model, store=store)).results == finished.results
    await store.close()
