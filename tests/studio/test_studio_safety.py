"""One layer keeps strangers out and foreign text harmless, on every page."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from studio_kit import HOSTILE, solved, studio_client

from mulligan.app.config import load
from mulligan.app.memory import open_bank
from mulligan.app.service import Service
from mulligan.core.episode import Recalled
from mulligan.core.errors import InvalidInput
from mulligan.core.records import Episode, Head, Plan, Task
from mulligan.store import open_store
from mulligan.studio.safety import HEADERS
from mulligan.studio.serving import serve_studio
from mulligan.web.tokens import Token

SECRET = "0123456789abcdef"


@pytest.mark.parametrize(
    "path",
    ["/", "/runs", "/benchmarks", "/static/style.css", "/static/blocks.css", "/runs/none", "/nothing", "/static/x"],
)
async def test_each_answer_has_the_headers_that_let_no_foreign_script_run(path: str) -> None:
    async with studio_client() as client:
        answer = await client.get(path)
    assert {name: answer.headers[name] for name in HEADERS} == HEADERS
    policy = answer.headers["content-security-policy"]
    assert "unsafe" not in policy
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy


async def test_no_page_has_a_script_or_a_style_within_it() -> None:
    async with open_store(load().store) as store:
        episode = await solved(store)
    async with studio_client() as client:
        for path in ("/runs", f"/runs/{episode.id}", f"/runs/{episode.id}/steps/1", "/benchmarks", "/nothing"):
            page = (await client.get(path)).text
            assert re.findall(r"<script(?![^>]* src=\"/static/studio\.js\")", page) == []
            assert re.findall(r"<style| style=| on\w+=|https?://", page) == []


async def test_foreign_text_is_shown_and_never_acted_upon() -> None:
    async with open_store(load().store) as store:
        episode = await solved(store, f"Say green {HOSTILE}")
    async with studio_client() as client:
        for path in ("/runs", f"/runs/{episode.id}", f"/runs/{episode.id}/steps/1", f"/runs?q={HOSTILE[:30]}"):
            page = (await client.get(path)).text
            assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
            assert "<script>alert" not in page
            assert "<img src=x" not in page
            assert "{{ 7 * 7 }}" in page or "49" not in page
            assert not re.search(r"[\x1b\u202e]", page)
            assert "sk-ant-api03" not in page


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "", "localhost.evil:8642"])
async def test_a_name_that_was_made_to_point_here_is_refused(host: str) -> None:
    async with studio_client() as client:
        answer = await client.get("/runs", headers={"Host": host})
        assert answer.status_code == 421
        assert (await client.get("/runs", headers={"Host": "localhost:8642"})).status_code == 200


async def test_with_a_token_only_who_bears_it_sees_anything() -> None:
    async with studio_client(tokens=[Token("token 1", SECRET)]) as client:
        for path in ("/runs", "/static/style.css", "/runs?token=guessed-guessed-1", "/runs/live"):
            assert (await client.get(path)).status_code == 401
        first = await client.get(f"/runs?q=x&token={SECRET}")
        assert (first.status_code, first.headers["location"]) == (303, "/runs?q=x")
        cookie = first.headers["set-cookie"].lower()
        assert "httponly" in cookie
        assert "samesite=strict" in cookie
        assert (await client.get("/runs")).status_code == 200


async def test_without_write_nothing_is_changed() -> None:
    async with studio_client() as client:
        answer = await client.post("/runs", data={"csrf": "x"})
        assert answer.status_code == 403
        assert "--write" in answer.text
        assert (await client.request("DELETE", "/runs")).status_code == 405


async def test_a_form_needs_the_secret_of_this_studio_and_its_own_origin() -> None:
    async with studio_client(write=True) as client:
        secret = client.csrf
        for form, headers, said in (
            ({}, {}, "Reload the page"),
            ({"csrf": "wrong"}, {}, "Reload the page"),
            ({"csrf": secret}, {"Origin": "https://evil.example"}, "other sites"),
            ({"csrf": secret}, {"Sec-Fetch-Site": "cross-site"}, "other sites"),
        ):
            answer = await client.post("/runs", data=form, headers=headers)
            assert (answer.status_code, said in answer.text) == (403, True), said
        assert (await client.post("/runs", data={"csrf": secret, "x": "y" * 1_000_001})).status_code == 413
        many = await client.post("/runs", data={"csrf": secret, **{f"field{n}": "" for n in range(1000)}})
        assert (many.status_code, "1,000 fields" in many.text) == (413, True)
        assert (await client.post("/runs", data={"csrf": secret})).status_code == 405  # let through to the page


async def test_other_machines_are_let_in_only_with_a_token() -> None:
    with pytest.raises(InvalidInput, match="MULLIGAN_TOKEN"):
        await serve_studio(Service(), print, host="0.0.0.0")


async def test_a_token_of_one_agent_does_not_open_a_studio_of_all() -> None:
    with pytest.raises(InvalidInput, match="--bank books"):
        await serve_studio(Service(), print, tokens=[Token("token 1", SECRET, "books")])


async def test_a_run_of_an_agent_shows_no_lesson_of_a_bank_that_is_not_served() -> None:
    async with open_bank("films") as bank:
        await bank.add("A secret of films", "Say green.")
        recall = await bank.recall("Say green")
    head = Head(settings={"bank": "films", "learns": True})
    async with open_store(load().store) as store:
        await store.create(
            Episode("e1", Task("Say green"), run="e1", agent="books", head=head, plan=Plan(recalls=True))
        )
        lease = await store.acquire("e1", "me", 60)
        await store.append(lease, 0, Recalled(replace(recall, lessons=())))
    async with studio_client() as client:
        assert f"/bank/recalls/{recall.id}" in (await client.get("/runs/e1")).text
    async with studio_client(agent_id="books") as client:
        page = (await client.get("/runs/e1")).text
        assert "/bank/recalls" not in page
        assert "Its bank is not available here." in page
        assert (await client.get(f"/bank/recalls/{recall.id}")).status_code == 404


async def test_a_studio_of_one_agent_shows_nothing_of_another() -> None:
    async with open_store(load().store) as store:
        theirs = await solved(store)
    async with studio_client(agent_id="books") as client:
        assert theirs.id not in (await client.get("/runs?benches=1")).text
        for path in (f"/runs/{theirs.id}", f"/runs/{theirs.id}/live", f"/runs/{theirs.id}/steps/1", "/benchmarks"):
            assert (await client.get(path)).status_code == 404
        assert "bank books" in (await client.get("/runs")).text
        overview = (await client.get("/")).text
        assert theirs.id not in overview
        assert "Say green" not in overview
