"""What leaves the store: whole enough to replay, readable, without secrets; and episodes copied for a fork."""

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
from inline_snapshot import snapshot

from mulligan.app.story import markdown
from mulligan.core.codec import digest, from_json
from mulligan.core.episode import Acted, Evaluated, Event, Forked, Recalled, Reflected, Stopped
from mulligan.core.errors import NotFound, StoreError
from mulligan.core.loop import scope
from mulligan.core.records import (
    Artifact,
    Attempt,
    Check,
    Episode,
    Feedback,
    Head,
    Json,
    Lesson,
    Outcome,
    Plan,
    Recall,
    Reflection,
    Step,
    Stop,
    Task,
    Usage,
)
from mulligan.recording.journal import StoredJournal
from mulligan.recording.ledger import Entry
from mulligan.store.export import export
from mulligan.store.sqlite import SqliteStore
from mulligan.text.secrets import MASK

SECRET = "ghp" + "_" + "a1B2c3D4e5" * 4
CHECK = Check(
    "rm *", "pattern rm", risk="All is lost.", decision="change", change="edit", lessons=("l1",), notes=("n",)
)
LESSON = Lesson("l1", "Read *first*", "Look before you leap.", "failure")


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    store = SqliteStore(tmp_path / "m.db")
    yield store
    await store.close()


async def lived(store: SqliteStore, id: str) -> None:
    """An episode with everything in it, interrupted after its second trial."""
    head = Head(models={"actor": "scripted", "reflector": "scripted"})
    task = Task("Write `add`.\n```\nassert add(1, 2) == 3\n```")
    await store.create(Episode(id, task, run="r1", plan=Plan(recalls=True), head=head), {"tests.py": f"# {SECRET}"})
    lease = await store.acquire(id, "me", 60)
    journal = StoredJournal(await Entry.read(store, lease))

    async def answer() -> Json:
        return {"content": "def add(a, b): ..."}

    with scope("trial.1", "act"):
        await journal.step("model", {"messages": [{"role": "user", "text": f"key {SECRET}"}]}, answer)
    await store.begin_step(lease, "trial.2/act/model#1", {"messages": []}, digest({"messages": []}))
    steps = (Step("hm", "ls", "a.py", Outcome(0.5, halted="n")), Step(action="edit", check=CHECK))
    used = Usage(100, 20, 1, 0.0123)
    for seq, event in enumerate(
        [
            Recalled(Recall("rc", (LESSON,))),
            Acted(
                1, Attempt("````\n# not the end", steps, Outcome(1, True), (Artifact("commit", "abc"),), used), None, 2
            ),
            Evaluated(1, Feedback(False, "add(1, 2) gave -1", 0.25, "unit_tests", ("in-process: can be forged",))),
            Reflected(1, Reflection(f"Use +, not -. Never say {SECRET}.", Usage(5, 5, 1, None))),
            Acted(2, Attempt("def add(a, b): return a + b")),
            Evaluated(2, Feedback(None, "the judge was out")),
            Stopped(Stop("interrupted", "during act of trial 3")),
        ]
    ):
        await store.append(lease, seq, event)
    await store.release(lease)


async def test_an_export_holds_all_that_a_replay_needs(store: SqliteStore) -> None:
    await lived(store, "e")
    await lived(store, "f")
    told = json.loads(json.dumps(await export(store, ["e", "f"]), allow_nan=False))
    assert list(told) == ["mulligan", "schema", "episodes", "steps"]
    assert told["schema"] == 1
    assert [one["episode"]["id"] for one in told["episodes"]] == ["e", "f"]
    assert told["episodes"][0]["files"] == {"tests.py": f"# {MASK}"}
    events = [from_json(Event, event) for event in told["episodes"][0]["events"]]
    assert [type(event).__name__ for event in events][:3] == ["Recalled", "Acted", "Evaluated"]
    assert from_json(Episode, told["episodes"][0]["episode"]).trials[1].attempt.output == "def add(a, b): return a + b"
    assert told["steps"] == told["episodes"][0]["steps"] + told["episodes"][1]["steps"]
    asked = {"messages": [{"role": "user", "text": f"key {SECRET}"}]}
    assert told["steps"][0] == {
        "episode": "e",
        "key": "trial.1/act/model#1",
        "request": {"messages": [{"role": "user", "text": f"key {MASK}"}]},
        "request_hash": digest(asked),
        "result": {"content": "def add(a, b): ..."},
        "done": True,
    }
    assert (told["steps"][1]["done"], told["steps"][1]["result"]) == (False, None)


async def test_no_secret_leaves(store: SqliteStore) -> None:
    await lived(store, "e")
    assert SECRET not in json.dumps(await export(store, ["e"]))
    assert SECRET not in (story := await markdown(store, ["e"])).replace("\\", "")
    assert MASK in story


async def test_what_is_not_there_is_not_exported(store: SqliteStore) -> None:
    with pytest.raises(NotFound):
        await export(store, ["x"])
    with pytest.raises(NotFound):
        await markdown(store, ["x"])


STORY = snapshot("""\
# Write \\`add\\`. \\`\\`\\` assert add(1, 2) == 3 \\`\\`\\`

**paused: interrupted** · Tries 2 · Judge unit\\_tests · Model scripted · Time 2.0 s · Tokens 130 · Cost unknown · Run e\\_1

**Why it stopped:** during act of try 3

To resume the run:

```text
mulligan runs resume r1
```

## Learned from this run

Nothing: the run had no bank. To learn from a run: mulligan solve --memory

## Recalled for this run

**Read \\*first\\*** l1, strategy, from a failure

```text
Look before you leap.
```

## Task

````text
Write `add`.
```
assert add(1, 2) == 3
```
````

Run details:

- **Model:** scripted (actor, reflector)
- **Seed:** 0

## Try 1: failed, score 0.25

Used: 2 calls, 105 tokens in, 25 out, cost unknown

What it did (2 steps):

**Step 1** reward 0.5, halted: n

Thought:

```text
hm
```

Action:

```text
ls
```

Observation:

```text
a.py
```

**Step 2**

Check before the action (pattern rm, shown the lessons l1)

```text
What could go wrong: All is lost. Decision: not rm *, but edit.
```

Note: n

Action:

```text
edit
```

### Attempt

`````text
````
# not the end
`````

The environment reports: reward 1, done

Saved as: commit abc

### Feedback from unit\\_tests: failed, score 0.25

```text
add(1, 2) gave -1
```

Note: in-process: can be forged

### Lesson for the next try

```text
Use +, not -. Never say [secret masked].
```

## Try 2: no verdict

### Changed since try 1

`````text
@@ -1,2 +1,1 @@
- ````
- # not the end
+ def add(a, b): return a + b
`````

Full attempt:

```text
def add(a, b): return a + b
```

### Feedback: no verdict

```text
the judge was out
```
""")


async def test_the_story_reads_trial_by_trial(store: SqliteStore) -> None:
    await lived(store, "e_1")
    assert await markdown(store, ["e_1"]) == STORY


async def test_a_copy_goes_on_while_the_old_one_stays(store: SqliteStore) -> None:
    await lived(store, "e")
    before = await export(store, ["e"])
    head = Head(models={"actor": "another"})
    copied = await store.copy("e", "fork", "r2", head, {"tests.py": "new"}, Forked(Plan(reflects=False)))
    old = await store.load("e")
    assert copied == replace(
        old, id="fork", run="r2", head=head, forked_from="e", plan=Plan(reflects=False), stop=None, lost=Usage()
    )
    assert copied == await store.load("fork")
    assert await store.files("fork") == {"tests.py": "new"}
    assert await store.steps("fork") == await store.steps("e")
    lease = await store.acquire("fork", "me", 60)
    assert (await store.events("fork"))[-1] == Forked(Plan(reflects=False))
    await store.begin_step(lease, "trial.1/act/model#1", "another", "hash")
    assert await export(store, ["e"]) == before


async def test_a_copy_is_all_or_nothing(store: SqliteStore) -> None:
    await lived(store, "e")
    with pytest.raises(StoreError, match="'e' already exists"):
        await store.copy("e", "e", "r1", Head(), {}, Forked(Plan()))
    with pytest.raises(NotFound):
        await store.copy("x", "y", "r1", Head(), {}, Forked(Plan()))
    with pytest.raises(StoreError, match="Episode y cannot be stored"):
        await store.copy("e", "y", "r1", Head(settings={"t": float("nan")}), {}, Forked(Plan()))
    assert [episode.id for episode in await store.list()] == ["e"]
