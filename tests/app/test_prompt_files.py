from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mulligan.app.prompts import FilePrompts
from mulligan.core.errors import InvalidInput, UnknownName
from mulligan.core.prompts import Prompt


def test_messages_are_split_by_role_and_filled() -> None:
    prompt = Prompt.parse("x", "[[system]]\nBe brief.\n\n[[user]]\nTask:\n{{task}}\n\nPast:\n{{past}}\n")
    system, user = prompt.render(task="add", past="failed")
    assert (system.role, system.text) == ("system", "Be brief.")
    assert (user.role, user.text) == ("user", "Task:\nadd\n\nPast:\nfailed")


def test_a_paragraph_with_nothing_to_say_is_left_out() -> None:
    (user,) = Prompt.parse("x", "[[user]]\n{{task}}\n\nPast:\n{{past}}").render(task="add", past="")
    assert user.text == "add"


@given(st.text(), st.text(alphabet="{}task past\n[]user", min_size=1))
def test_values_are_never_parsed_again(before: str, value: str) -> None:
    (user,) = Prompt.parse("x", "[[user]]\nA {{task}} Z").render(task=value, past=before)
    assert user.text == f"A {value} Z".strip("\n")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no message"),
        ("hello", "must come before 'hello'"),
        ("[[robot]]\nhi", "is not one of system, user, assistant"),
    ],
)
def test_a_broken_prompt_says_what_is_wrong(text: str, said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        Prompt.parse("x", text)


def test_a_placeholder_that_nobody_fills_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"\{\{tsk\}\} is not available here; use past, task"):
        Prompt.parse("x", "[[user]]\n{{tsk}}").check("task", "past")


def test_the_users_folder_goes_first_and_its_hash_is_kept(tmp_path: Path) -> None:
    (tmp_path / "complete.code.md").write_text("[[user]]\nMine: {{task}}")
    mine, ours = FilePrompts([tmp_path]), FilePrompts()
    assert mine.get("complete.code").render(task="t")[0].text == "Mine: t"
    assert ours.get("complete.code").slots >= {"task", "past"}
    assert mine.used["complete.code"] != ours.used["complete.code"]


def test_an_unknown_prompt_names_the_nearest() -> None:
    with pytest.raises(UnknownName, match=r"Did you mean 'complete\.code'"):
        FilePrompts().get("complete.cod")


def test_a_missing_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="does not exist"):
        FilePrompts([tmp_path / "nowhere"])
