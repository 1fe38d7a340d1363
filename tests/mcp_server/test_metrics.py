"""GET /metrics over a real server, read by the parser of Prometheus's own client."""

import json
from collections.abc import Generator, Mapping
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from mcp import Client
from posting import Poster, modern
from prometheus_client.parser import text_string_to_metric_families
from serving import Running, over, served

from mulligan.core.errors import InvalidInput
from mulligan.core.operations import asked, operation, watched_by
from mulligan.core.questions import Answer, Message, Question, Sampling
from mulligan.core.records import Usage
from mulligan.mcp_server.http.metrics import MAX_MODELS, Metrics
from mulligan.store import open_store
from mulligan.web.tokens import Token, read_metrics_token

OPEN, BOUND, SCRAPER = "open-token-of-16-chars", "bound-token-of-16-chars", "scraper-token-of-16-chars"
STEPS = [{"role": "assistant", "content": "I ran the tests before I changed anything."}]


def read(server: Running, token: str = "", method: str = "GET") -> tuple[int, str]:
    """The status and the page."""
    where = urlsplit(server.url)
    connection = HTTPConnection(where.hostname or "", where.port, timeout=30)
    try:
        connection.request(method, "/metrics", headers={"Authorization": f"Bearer {token}"} if token else {})
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def samples(page: str) -> Mapping[str, float]:
    """Each series with its labels, such as `mulligan_calls_total{result="answered",tool="solve"}`."""
    found: dict[str, float] = {}
    for family in text_string_to_metric_families(page):
        for one in family.samples:
            labels = ",".join(f'{name}="{value}"' for name, value in sorted(one.labels.items()))
            found[f"{one.name}{{{labels}}}" if labels else one.name] = one.value
    return found


def figures(server: Running, token: str = "") -> Mapping[str, float]:
    status, page = read(server, token)
    assert status == 200, page
    return samples(page)


@pytest.fixture
def server() -> Generator[Running]:
    with served("--metrics") as server:
        yield server


@pytest.mark.slow
async def test_what_clients_did_is_counted(server: Running) -> None:
    async with Client(over(server.url), mode="legacy") as client:
        lesson = {"title": "Test first", "description": "Before a change.", "content": "Run the tests before a change."}
        told = {"trajectory": STEPS, "query": "change the code", "success_signal": True}
        asked_for = await client.call_tool("extract_memory", {**told, "async_mode": False})
        work = asked_for.structured_content["task_id"]
        await client.call_tool("extract_memory", {**told, "task_id": work, "lessons": [{**lesson, "steps": [1]}]})
        await client.call_tool("retrieve_memory", {"query": "change the code"})
        await client.call_tool("retrieve_memory", {"query": "zzz", "agent_id": "nobody"})
        refused = await client.call_tool("retrieve_memory", {"query": ""})
        assert refused.is_error
        seen = figures(server)
        assert seen["mulligan_sessions"] == 1
    assert seen['mulligan_calls_total{result="answered",tool="retrieve_memory"}'] == 2
    assert seen['mulligan_calls_total{result="refused",tool="retrieve_memory"}'] == 1
    assert seen['mulligan_calls_total{result="answered",tool="extract_memory"}'] == 2
    assert seen['mulligan_call_seconds_count{tool="retrieve_memory"}'] == 3
    assert seen['mulligan_call_seconds_bucket{le="+Inf",tool="retrieve_memory"}'] == 3
    assert seen['mulligan_recalls_total{result="lessons"}'] == 1
    assert seen['mulligan_recalls_total{result="nothing"}'] == 1
    assert seen["mulligan_recalled_lessons_total"] == 1
    assert seen['mulligan_lessons_total{result="new"}'] == 1
    assert seen['mulligan_errors_total{error="InvalidInput",operation="call"}'] == 1
    assert seen['mulligan_http_responses_total{method="POST",status="200"}'] >= 5
    assert figures(server)["mulligan_sessions"] == 0
    assert figures(server)['mulligan_http_responses_total{method="GET",status="200"}'] >= 2


@pytest.mark.slow
async def test_no_series_names_an_agent_or_a_session(server: Running) -> None:
    async with Client(over(server.url), mode="legacy") as client:
        for agent in ("agent-one", "agent-two"):
            await client.call_tool("retrieve_memory", {"query": "a task of theirs", "agent_id": agent})
        await client.call_tool("no_such_tool_of_mine", {})
        page = read(server)[1]
    labels = {name for family in text_string_to_metric_families(page) for one in family.samples for name in one.labels}
    known = {"tool", "result", "le", "operation", "error", "role", "model", "direction", "method", "status", "kind"}
    assert labels <= known
    for text in ("agent-one", "a task of theirs", "no_such_tool_of_mine"):
        assert text not in page


@pytest.mark.slow
async def test_the_queue_and_what_a_model_took(tmp_path: Path) -> None:
    (tmp_path / "answers.json").write_text(json.dumps(["41", "42", "42", "42"]))
    store = f"sqlite:///{tmp_path / 'store.db'}"
    async with open_store(store) as kept:
        await kept.memory.queue.enqueue("merge", "a", {"lessons": []}, waiting=True)
    model = f"scripted:{tmp_path / 'answers.json'}"
    with served("--metrics", "--tools", "all,solve", "--model", model, env={"MULLIGAN_STORE": store}) as server:
        async with Client(over(server.url), mode="legacy") as client:
            done = await client.call_tool("solve", {"task": "What is six times seven?", "expected": "42", "trials": 2})
            assert not done.is_error, done
        seen = figures(server)
    assert seen['mulligan_queue{kind="merge",status="waiting"}'] == 1
    assert seen['mulligan_episodes_total{stop="solved"}'] == 1
    assert seen['mulligan_trials_total{passed="false"}'] == 1
    assert seen['mulligan_trials_total{passed="true"}'] == 1
    (actor,) = (name for name in seen if name.startswith("mulligan_model_calls_total") and 'role="actor"' in name)
    assert seen[actor] == 2
    assert sum(value for name, value in seen.items() if name.startswith("mulligan_tokens_total")) > 0


def test_there_is_no_page_unless_it_is_asked_for() -> None:
    with served() as server:
        assert read(server)[0] == 404


def test_another_method_is_refused(server: Running) -> None:
    assert read(server, method="POST")[0] == 405


def test_who_may_read() -> None:
    env = {"MULLIGAN_TOKEN": f"{OPEN} anna:{BOUND}", "MULLIGAN_METRICS_TOKEN": SCRAPER}
    with served("--metrics", "--log-level", "info", env=env) as server:
        assert read(server)[0] == 401
        assert read(server, "another-token-of-16-chars")[0] == 401
        assert read(server, BOUND)[0] == 403
        assert read(server, OPEN)[0] == 200
        assert read(server, SCRAPER)[0] == 200
        body, headers = modern("tools/list")
        assert Poster(server.url, {**headers, "Authorization": f"Bearer {SCRAPER}"}).post(body)[0] == 401
        seen = figures(server, SCRAPER)
        assert SCRAPER not in server.said()
    assert seen['mulligan_http_responses_total{method="GET",status="401"}'] == 2
    assert seen['mulligan_http_responses_total{method="GET",status="403"}'] == 1


def test_where_all_tokens_are_of_one_agent_they_may_read() -> None:
    with served("--metrics", "--agent-id", "anna", env={"MULLIGAN_TOKEN": OPEN}) as server:
        assert read(server, OPEN)[0] == 200
        assert read(server)[0] == 401


def test_a_token_for_metrics_alone_closes_the_page_and_nothing_else() -> None:
    with served("--metrics", env={"MULLIGAN_METRICS_TOKEN": SCRAPER}) as server:
        assert read(server)[0] == 401
        assert read(server, SCRAPER)[0] == 200
        body, headers = modern("tools/list")
        assert Poster(server.url, headers).post(body)[0] == 200


@pytest.mark.parametrize("secret", ["tooshort", "with a space in the middle", OPEN])
def test_a_token_for_metrics_that_cannot_be(secret: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MULLIGAN_TOKEN", OPEN)
    monkeypatch.setenv("MULLIGAN_METRICS_TOKEN", secret)
    with pytest.raises(InvalidInput, match="MULLIGAN_METRICS_TOKEN") as refused:
        read_metrics_token(Token.all_in_environment())
    assert secret not in str(refused.value)


class Priced:
    """A model whose answers have a known price, or none."""

    def __init__(self, name: str, cost: float | None) -> None:
        self.name = self.id = name
        self._cost = cost

    async def ask(self, question: Question, sampling: Sampling = Sampling()) -> Answer:
        return Answer("yes", self.id, Usage(10, 5, 1, self._cost))


async def test_a_price_that_is_unknown_is_not_counted_as_nothing() -> None:
    metrics = Metrics({})
    question = Question((Message("user", "?"),))
    with watched_by(metrics.watch):
        await asked(Priced("cheap", 0.5), question, Sampling(), "actor")
        await asked(Priced("free", None), question, Sampling(), "actor")
    seen = await page(metrics)
    assert seen['mulligan_cost_dollars_total{model="cheap",role="actor"}'] == 0.5
    assert 'mulligan_cost_dollars_total{model="free",role="actor"}' not in seen
    assert seen['mulligan_unpriced_model_calls_total{model="free",role="actor"}'] == 1
    assert seen['mulligan_tokens_total{direction="input",model="cheap",role="actor"}'] == 10


async def test_models_beyond_the_limit_share_one_series() -> None:
    metrics = Metrics({})
    with watched_by(metrics.watch):
        for n in range(MAX_MODELS + 10):
            with operation("model", f"m{n}", {"role": "actor"}):
                pass
    seen = await page(metrics)
    calls = {name: value for name, value in seen.items() if name.startswith("mulligan_model_calls_total")}
    assert len(calls) == MAX_MODELS + 1
    assert calls['mulligan_model_calls_total{model="other",result="answered",role="other"}'] == 10


async def page(metrics: Metrics) -> Mapping[str, float]:
    async with open_store("memory:") as store:
        return samples((await metrics.page(store.memory.queue)).decode())
