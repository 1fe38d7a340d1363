"""What a text is found by: words, identifiers, numbers, and scripts without spaces; and the blob that is stored."""

import subprocess
import sys
from collections import Counter

import pytest
from each_row import each_row
from hypothesis import example, given
from hypothesis import strategies as st

from mulligan.bank.recall.terms import (
    LANGUAGES,
    VERSION,
    commonness,
    is_current,
    is_outdated,
    language_of,
    languages_of,
    read_blobs,
    terms,
    terms_of,
    weighted_terms,
)

CHINESE = st.text(st.characters(min_codepoint=0x4E00, max_codepoint=0x9FA5), min_size=1, max_size=20)
WORDS = st.lists(st.text(st.characters(categories=["Ll"]), min_size=1, max_size=12), max_size=20)


@each_row(
    ("text", "found"),
    [
        ("Orders ORDER orders' class", ["ord", "ord", "ord", "class"]),
        ("times timed timing stop stopped", ["tim", "tim", "tim", "stop", "stop"]),
        ("I don't see a customer's x", ["dont", "see", "custom"]),
        ("Prüfung prüfe Rechnungen Rechnung Abbrüche", ["pruf", "pruf", "rechn", "rechn", "abbruch"]),
        ("openBankAccount", ["openbankaccount", "open", "bank", "account"]),
        ("HTTPServer2", ["httpserver2", "http", "server2"]),
        ("open_bank_account_4821", ["open_bank_account_4821", "open", "bank", "account", "4821"]),
        ("os.path.join().", ["os.path.join", "os", "path", "join"]),
        ("1,000 3.14", ["1000", "1", "000", "3.14", "3", "14"]),
        ("ＡＢＣ Straße", ["abc", "strass"]),
        ("查询", ["查", "询", "查询"]),
        ("用numpy库", ["用", "nump", "库"]),
        ("हिन्दी", ["हिन्द"]),
        ("… — !?", []),
        ("Build C++ and c#, not x+y", ["build", "c++", "and", "c#", "not"]),
        ("l'export d’une qu'elle o'clock", ["export", "une", "ell", "oclock"]),
        ("IŞIK İzmir ışık", ["isik", "izmir", "isik"]),
        ("كِتَابٌ الكتاب وكتاب", ["كتاب", "كتاب", "كتاب"]),
        ("מסמך המסמכים", ["מסמכ", "מסמכ"]),
        ("отчёт отчета отчётами", ["отчет", "отчет", "отчет"]),
        ("फ़ाइलों फाइल", ["फाइल", "फाइल"]),
        ("Đà Łódź Ørsted", ["da", "lodz", "orst"]),
        ("٤٢ 42", ["42", "42"]),
    ],
)
def test_terms_of_a_text(text: str, found: list[str]) -> None:
    assert sorted(terms(text)) == sorted(found)


def test_a_long_word_is_found_by_its_beginning_and_its_end() -> None:
    long = set(terms("Datenbankverbindungen"))
    assert set(terms("Datenbank Verbindung")) <= long
    assert not set(terms("Bank")) & long
    assert list(terms("notification")) == ["notification"]


def test_an_older_blob_is_distinguished_from_a_damaged_one() -> None:
    blob = terms_of("one two")
    old = (VERSION - 1).to_bytes(4, "little") + blob[4:]
    assert [is_outdated(one) for one in (old, blob, old[:-1], b"", bytes(5))] == [True, False, False, False, False]


@pytest.mark.parametrize(
    ("rarer", "commoner"), [("timeout", "the"), ("bank", "what"), ("锁定", "锁"), ("锁", "の"), ("sperr", "der")]
)
def test_small_words_are_known_to_say_little(rarer: str, commoner: str) -> None:
    (rare,), (common,) = map(list, (terms(rarer), terms(commoner))) if len(rarer) > 2 else ([rarer], [commoner])
    assert commonness(rare) < commonness(common)


@given(CHINESE, CHINESE, CHINESE)
def test_every_chinese_substring_is_found(before: str, wanted: str, behind: str) -> None:
    assert set(terms(wanted)) <= set(terms(f"in{before}{wanted}{behind}text"))


@given(WORDS, WORDS)
def test_terms_of_two_texts_are_those_of_both(first: list[str], second: list[str]) -> None:
    one, other = " ".join(first), " ".join(second)
    assert Counter(terms(f"{one}\n{other}")) == Counter(terms(one)) + Counter(terms(other))


@given(WORDS)
def test_capitals_make_no_difference_to_plain_words(words: list[str]) -> None:
    text = " ".join(word for word in words if word.isascii())
    assert terms_of(text) == terms_of(text.upper()) == terms_of(text.title())


@given(st.lists(st.text(max_size=60), max_size=8))
def test_blobs_are_read_as_they_were_written(texts: list[str]) -> None:
    hashes, counts, sizes = read_blobs([terms_of(text) for text in texts])
    assert all(size >= len(set(terms(text))) for size, text in zip(sizes, texts, strict=True))
    assert counts.sum() >= sum(min(n, 255) for text in texts for n in Counter(terms(text)).values())
    assert len(hashes) == sizes.sum()


@given(st.text(max_size=60))
@example("\u00b4A")  # an accent without a letter, before one
def test_a_text_is_found_by_all_that_it_holds(text: str) -> None:
    assert set(weighted_terms(text)[0].tolist()) <= set(read_blobs([terms_of(f"before {text}\nbehind")])[0].tolist())
    assert len(weighted_terms(text)[0]) or not any(c.isalnum() for c in text)


@each_row(
    ("text", "language"),
    [
        ("the tests of the importer hang", "en"),
        ("def f(x): return x", "en"),
        ("", "en"),
        ("Wie heißt der Branch für die nächste Version?", "de"),
        ("pourquoi les montants sont-ils faux", "fr"),
        ("cómo se llama la rama", "es"),
        ("İki sekme açıkken sepet yanlış", "tr"),
        ("почему тест падает", "ru"),
        ("أين أقرأ السجلات", "ar"),
        ("איפה הקובץ", "he"),
        ("फ़ाइल कहाँ है", "hi"),
        ("用 numpy 读取大文件", "zh"),
        ("numpyでファイルを読む", "ja"),
        ("파일은 어디에 있나", "ko"),
        ("Ελληνικά", ""),
    ],
)
def test_the_language_of_a_text_is_told(text: str, language: str) -> None:
    assert LANGUAGES[language_of(text)] == language
    assert languages_of([terms_of(text), b"rubbish"]) == [language_of(text), 0]


def test_what_is_not_a_blob_of_this_version_has_no_terms() -> None:
    good, newer = terms_of("one two"), (VERSION + 1).to_bytes(4, "little") + terms_of("one")[4:]
    assert read_blobs([b"", good, newer, good[:-1], b"rubbish"])[2].tolist() == [0, 2, 0, 0, 0]
    assert [is_current(blob) for blob in (good, newer, good[:-1], b"")] == [True, False, False, False]


def test_equal_texts_give_equal_bytes_in_every_process() -> None:
    code = "from mulligan.bank.recall.terms import terms_of; print(terms_of('Prüfe numpy库 half \\udc80').hex())"
    ran = [
        subprocess.run(
            [sys.executable, "-c", code], env={"PYTHONHASHSEED": seed}, capture_output=True, text=True, timeout=60
        ).stdout
        for seed in ("1", "2")
    ]
    assert ran[0] == ran[1] == terms_of("Prüfe numpy库 half \udc80").hex() + "\n"
    assert terms_of("ab").hex() == "0300000000" + "6d48839e01"


def test_a_term_counts_255_times_at_most() -> None:
    assert read_blobs([terms_of("again " * 300)])[1].tolist() == [255]
