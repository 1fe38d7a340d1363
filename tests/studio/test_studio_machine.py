"""The pages about agents as files, hooks, the queue and this machine."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from banks import an_episode, lessons_of
from seed_agents import lay
from studio_kit import HOSTILE, studio_client

from mulligan.app.memory import open_bank
from mulligan.hooks.journal import Journal
from mulligan.hooks.project import project_id
from mulligan.sessions.events import Notice

HEAD = "---\nname: tried\ndescription: d <b>\nversion: '1'\npattern: oneshot\n---\nAnswer <script>alert(1)</script>.\n"


async def test_the_queue_shows_what_waits_and_takes_its_answer() -> None:
    async with open_bank("") as bank:
        learned = await bank.learn(an_episode("e1", f"Say green {HOSTILE}", "green"))
        assert learned.work
    async with open_bank("films") as bank:
        theirs = await bank.learn(an_episode("e2", "Say blue", "blue"))
    async with studio_client(write=True) as client:
        page = (await client.get("/queue")).text
        assert f'href="/queue/{learned.work}"' in page
        assert "waits for an answer" in page
        assert str(theirs.work) not in page
        assert (await client.get(f"/queue/{theirs.work}")).status_code == 404
        asked = (await client.get(f"/queue/{learned.work}")).text
        assert "&lt;script&gt;alert(1)" in asked
        assert "<script>alert" not in asked
        for answer, status in (("no", 400), (json.dumps(lessons_of(("Say it", "Say the word."))), 303)):
            form = {"csrf": client.csrf, "answer": answer}
            done = await client.post(f"/queue/{learned.work}", data=form)
            assert done.status_code == status
        assert "Nothing is pending." in (await client.get("/queue")).text
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
        assert "not ended" in page
    async with studio_client(agent_id="books") as client:
        assert (await client.get("/hooks")).status_code == 404


async def test_the_doctor_says_what_works_here() -> None:
    async with studio_client() as client:
        page = (await client.get("/doctor")).text
    assert re.search(r'<th scope="row">store</th><td><span class="badge ok">', page)
    assert "Python" not in re.findall(r'<th scope="row">([^<]+)</th>', page)
    assert "python" in re.findall(r'<th scope="row">([^<]+)</th>', page)
