"""The pages about agents as files, hooks, the queue and this machine."""

from __future__ import annotations

import asyncio
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from banks import an_episode, lessons_of
from goal_kit import folder
from seed_agents import lay
from studio_kit import HOSTILE, studio_client

from mulligan.app.memory import open_bank
from mulligan.goals.record import sync
from mulligan.goals.state import Goals
from mulligan.hooks.journal import Journal
from mulligan.hooks.learning import add
from mulligan.hooks.project import project_id
from mulligan.sessions.events import Notice
from mulligan.sessions.pairs import Found

HEAD = "---\nname: tried\ndescription: d <b>\nversion: '1'\npattern: oneshot\n---\nAnswer <script>alert(1)</script>.\n"


async def test_the_queue_shows_what_waits_and_takes_its_answer() -> None:
    async with open_bank("") as bank:
        learned = await bank.learn(an_episode("e1", f"Say green {HOSTILE}", "green"))
        assert learned.work
    async with open_bank("films") as bank:
        theirs = await bank.learn(an_episode("e2", "Say blue", "blue"))
    async with studio_client(agent_id="films") as client:
        page = (await client.get("/queue")).text
        assert f'href="/queue/{theirs.work}"' in page
        assert str(learned.work) not in page
        assert (await client.get(f"/queue/{learned.work}")).status_code == 404
    async with studio_client(write=True) as client:
        page = (await client.get("/queue")).text
        assert f'href="/queue/{learned.work}"' in page
        assert f'href="/queue/{theirs.work}"' in page
        assert "waiting for an answer" in page
        asked = (await client.get(f"/queue/{learned.work}")).text
        assert "&lt;script&gt;alert(1)" in asked
        assert "<script>alert" not in asked
        for answer, status in (("no", 400), (json.dumps(lessons_of(("Say it", "Say the word."))), 303)):
            form = {"csrf": client.csrf, "answer": answer}
            done = await client.post(f"/queue/{learned.work}", data=form)
            assert done.status_code == status
        assert str(learned.work) not in (await client.get("/queue")).text
        assert "Say the word." in (await client.get(done.headers["location"])).text


async def test_agents_are_listed_with_their_keys_and_what_is_wrong_now(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    lay(tmp_path / "agents" / "tried", {"AGENT.md": HEAD})
    async with studio_client() as client:
        page = (await client.get("/agents")).text
        assert "can run" in page
        assert re.search(r"none</span> in 1 agent and 0 skills", page)
        agent = (await client.get("/agents/tried")).text
        assert "d &lt;b&gt;" in agent
        assert "Answer &lt;script&gt;alert(1)&lt;/script&gt;." in agent
        lay(tmp_path / "agents" / "tried", {"AGENT.md": HEAD.replace("oneshot", "never")})
        page = (await client.get("/agents")).text
        assert "has errors" in page
        assert "tried/AGENT.md:5" in page
        assert "has errors" not in (await client.get("/agents/tried")).text
        assert "tried/AGENT.md:5" in (await client.get("/agents/tried")).text
        for name in ("gone", "..%2f..", "%2e%2e"):
            assert (await client.get(f"/agents/{name}")).status_code in (404, 307), name


async def test_hooks_show_sessions_and_are_made_by_nobody_who_looks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    async with studio_client() as client:
        assert "No hook has run here yet." in (await client.get("/hooks")).text
        assert "No hook has run here yet." in (await client.get("/hooks")).text
        with Journal() as journal:
            journal.seen(Notice("claude", "start", "s-<b>1", str(tmp_path)), project_id(str(tmp_path)))
        page = (await client.get("/hooks")).text
        assert "s-&lt;b&gt;1" in page
        assert "Agents learned 0 lessons and 0 candidates from 1 session." in page
    async with studio_client(agent_id="books") as client:
        assert (await client.get("/hooks")).status_code == 404


async def test_a_session_is_told_from_its_failure_to_whether_it_came_again_and_candidates_are_reviewed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    project = project_id(str(tmp_path))
    found = Found(
        "make: no target <b>docs</b>",
        "fails: make docs\nworks: make site",
        "When make docs fails",
        ("make|docs",),
        {"make|site": "make site"},
        {
            "agent": "claude",
            "session": "s1",
            "calls": ["c1", "c2"],
            "fails": "no rule <b>",
            "works": "built",
            "at": 1.0,
        },
    )
    other = replace(found, title="Another", errors=("other",), seen={**found.seen, "calls": ["c3", "c4"]})
    async with open_bank(project, project="") as bank:
        ids = [(await add(bank, one.lesson(), confirmed=False)).id for one in (found, other)]
    with Journal() as journal:
        notice = Notice("claude", "failure", "s1", str(tmp_path), call="c1")
        journal.seen(notice, project)
        journal.failed(notice, project, "digest", "no rule to make target")
        journal.show(notice, project, [(ids[0], ["digest"])], receipt="r1")
        journal.seen(replace_moment(notice), project)
    async with studio_client(write=True) as client:
        page = (await client.get("/hooks")).text
        for text in (
            "no rule &lt;b&gt;",
            "built",
            "make: no target &lt;b&gt;docs&lt;/b&gt;",
            "Occurred again?",
            "in 0 of 1 known case",
        ):
            assert text in page, text
        assert "Candidates to review (2)" in page
        for id, do in zip(ids, ("keep", "drop"), strict=True):
            answer = await client.post("/hooks", data={"csrf": client.csrf, "id": id, "do": do})
            assert answer.status_code == 303
        assert (await client.post("/hooks", data={"csrf": client.csrf, "id": ids[0], "do": "eat"})).status_code == 400
        page = (await client.get("/hooks")).text
        assert "Candidates to review (0)" in page
        assert "Lessons kept (1)" in page
    async with open_bank(project) as bank:
        kept, dropped = [await bank.get(id) for id in ids]
        assert (kept.confirmed, kept.pinned, dropped.state) == (True, True, "retired")


@pytest.mark.slow
def test_the_goal_of_the_folder_is_shown_with_the_tries_of_each_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MULLIGAN_HOME", str(tmp_path / "home"))
    place = folder(tmp_path)
    monkeypatch.chdir(place.path)
    place.goal(trials=3)
    place.prompt()
    place.write("words.txt", "bad-one\n")
    assert "try 1 of 3" in place.stop()
    with Goals() as goals:
        sync(goals, place.now().id)

    async def look() -> None:
        async with studio_client() as client:
            page = (await client.get("/hooks")).text
            assert "python3 check.py</code> must pass before a turn in this folder can end." in page
            assert "1 of 3 tries" in page
            run = re.search(r'href="(/runs/[0-9a-f]+\.1)">claude', page)
            assert run
            assert "bad-one" in (await client.get(run[1])).text

    asyncio.run(look())


def replace_moment(notice: Notice) -> Notice:
    """The end of the session of this notice."""
    return Notice(notice.agent, "end", notice.session, notice.folder)


async def test_the_doctor_says_what_works_here() -> None:
    async with studio_client() as client:
        page = (await client.get("/doctor")).text
    assert re.search(r'<th scope="row">store</th><td><span class="badge ok">', page)
    assert "Python" not in re.findall(r'<th scope="row">([^<]+)</th>', page)
    assert "python" in re.findall(r'<th scope="row">([^<]+)</th>', page)
