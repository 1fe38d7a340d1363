"""A query that is a lesson's own text finds the lesson, whatever its language and length."""

import asyncio
from typing import Any

import pytest
from bank_rows import index_of, row
from hypothesis import given
from hypothesis import strategies as st

from mulligan import Bank
from mulligan.app.memory import open_bank
from mulligan.app.plugins import build, names
from mulligan.bank.recall.candidates import NullDistribution
from mulligan.core.records import Spec
from mulligan.models.embedders.hash import HashEmbedder
from mulligan.store import open_store

ALPHABETS = (
    "abcdefghijklmnop",
    "абвгдежзи",
    "اأبتثجحخد",
    "אבגדהוזחט",
    "अआइकखगजत",
    "数据库锁定发票",
    "データベース請求",
    "ขคงจฉ",
    "ငွေတ",
    "αβγδε",
)
WORD = st.sampled_from(ALPHABETS).flatmap(lambda letters: st.text(letters, min_size=1, max_size=12))
TEXT = st.one_of(
    st.lists(WORD, min_size=1, max_size=60).map(" ".join),
    st.sampled_from(
        ["C", "C++", "R", "F#", ".NET", "!=", "&& ||", "a b c", "İstanbul IŞIK", "l'été d'août", "½ ﬁ Ǆ", "🎉 → 🚀"]
    ),
)
FIELDS = ("title", "description", "content")


@pytest.mark.light_cases(1)
@pytest.mark.parametrize("embedder", [None, HashEmbedder(384)], ids=["words", "vectors"])
@given(lessons=st.lists(st.tuples(TEXT, TEXT, TEXT), min_size=1, max_size=6), data=st.data())
def test_the_text_of_a_lesson_finds_it(embedder: Any, lessons: list[tuple[str, str, str]], data: st.DataObject) -> None:
    async def missing() -> list[tuple[str, str]]:
        async with open_bank("a", store=open_store("memory:").memory, embedder=embedder or "none") as bank:
            for title, description, content in lessons:
                await bank.add(title, content, description=description)
            lesson = data.draw(st.sampled_from(await bank.list()))
            field = data.draw(st.sampled_from(FIELDS))
            query = getattr(lesson, field)
            found = await bank.recall(query, top_k=len(lessons))
            return [] if lesson.id in {one.id for one in found.lessons} else [(field, query)]

    assert asyncio.run(missing()) == []


@pytest.mark.light_cases(1)
@pytest.mark.parametrize("strategy", names("retrieval"))
@pytest.mark.parametrize("threshold", [0.9, 1.0, "strict"])
async def test_each_ranking_gives_it_at_any_threshold(strategy: str, threshold: float | str) -> None:
    tasks = [
        f"{'Keep the exports of the warehouse ' * n}in folder {n} of the archive, not below it." for n in range(40)
    ]
    store = open_store("memory:").memory
    async with open_bank("a", store=store, embedder="none", settings={"retrieval": strategy}) as bank:
        for task in tasks:
            lesson = await bank.add("Note", task)
            given = await bank.recall(task, threshold=threshold, top_k=len(tasks))
            assert (lesson.id, 1.0) in [(one.id, one.score) for one in given.lessons]


def test_a_share_is_never_more_than_one() -> None:
    task = "woman however education library voice elected stop present next each"
    among = index_of(row(1, task)).candidates(task)
    assert among.by_words().tolist() == [1.0]
    assert build("retrieval", Spec("fused"), {}).rank(among, 3).rows == [0]


@given(st.floats(-1e6, 1e6), st.floats(1, 1e6), st.floats(1e-3, 10))
def test_relevance_stays_between_0_and_1(score: float, size: float, width: float) -> None:
    assert 0 <= NullDistribution(0.1, width, 0.05).relevance(score, size) <= 1


async def test_a_strategy_that_is_as_relevant_as_a_fact_stands_beside_it() -> None:
    task = "Deploy the search index to the staging cluster with the release token."
    async with Bank.open("a", store=open_store("memory:").memory, embedder="none") as bank:
        fact = await bank.add("Note", f"{task} It expires daily.", nature="fact")
        strategy = await bank.add("Note", task)
        assert [one.id for one in (await bank.recall(task)).lessons] == [fact.id, strategy.id]


@pytest.mark.parametrize(
    ("content", "query"),
    [
        ("أضف المفتاح إلى ملف الإعدادات", "مِلَفُّ الإِعْدَادَات"),
        ("İSTANBUL ŞUBESİ KAPALI", "istanbul şubesi kapalı"),
        ("הדוח נשמר בתיקייה", "איפה התיקייה"),
        ("отчёты хранятся в архиве", "где отчёт"),
        ("फ़ाइलें संग्रह में हैं", "फाइल कहाँ"),
        ("Write the driver in C#", "C#"),
        ("Régler l'authentification du relais", "authentification"),
        ("数据库每晚备份", "备份怎么做"),
    ],
)
async def test_a_word_in_another_spelling_of_its_script_finds_the_lesson(content: str, query: str) -> None:
    async with open_bank("a", store=open_store("memory:").memory, embedder="none") as bank:
        for n in range(20):
            await bank.add(f"Subject {n}", f"garden{n} window{n} bridge{n} copper{n} violin{n}")
        lesson = await bank.add("Note", content)
        assert [one.id for one in (await bank.recall(query)).lessons] == [lesson.id]
