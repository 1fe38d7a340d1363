"""The page on errors quotes messages as the program prints them."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from mulligan.cli.main import main

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "troubleshooting.md"
MESSAGES = re.findall(r"^### `(.*)`$", PAGE.read_text("utf-8"), re.MULTILINE)
COMMANDS = (
    "solve say --tests tests.py --model openai:gpt-4o",
    "solve say --tests tests.py --model gpt-4o",
    "solve say",
    "solve say --tests none.py",
    "solve say --evaluator nothing --model scripted:answer.txt",
    "solve say --tests tests.py --model scripted:answer.txt",
    "solve say --actor command:none --check true",
    "solve say --actor command:none --check true --workspace .",
    "solve say --actor command:true --check true --workspace .",
    "runs show abcdef",
    "memory show abc",
    "bench run humaneval",
    "studio --host 0.0.0.0",
)


def written(node: ast.AST) -> str:
    """A text of the source, with … for what is put into it."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=parts):
            return "".join(map(written, parts))
        case _:
            return "…"


@cache
def texts_of(file: Path) -> list[str]:
    nodes = ast.walk(ast.parse(file.read_text("utf-8")))
    return [text for node in nodes if isinstance(node, ast.JoinedStr | ast.Constant) and (text := written(node))]


def is_in_the_source(part: str) -> bool:
    """Whether a text of the source has this part. Only files with its longest word are parsed."""
    word = max(part.split(), key=len)
    files = (file for file in sorted((ROOT / "src").rglob("*.py")) if word in file.read_text("utf-8"))
    return any(part in text for file in files for text in texts_of(file))


def test_each_message_is_the_programs(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    """It is printed by one of the commands, or its fixed parts are texts of the source."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    (tmp_path / "tests.py").write_text("assert add(1, 2) == 3\n")
    (tmp_path / "answer.txt").write_text("This is a function.")
    for command in COMMANDS:
        with pytest.raises(SystemExit):
            main(command.split())
    (tmp_path / "mulligan.toml").write_text("[nothing]\n")
    with pytest.raises(SystemExit):
        main(["solve", "say", "--tests", "tests.py"])
    (tmp_path / "mulligan.toml").write_text('model = "openai:gpt-4o"\n')
    with pytest.raises(SystemExit):
        main(["memory", "list"])
    printed = capsys.readouterr().err + caplog.text

    def known(message: str) -> bool:
        parts = [part.strip(" .:,;?()") for part in message.split("…") if part.strip(" .:,;?()")]
        pattern = ".*".join(map(re.escape, parts))
        return bool(re.search(pattern, printed)) or all(map(is_in_the_source, parts))

    assert len(MESSAGES) >= 20
    assert [message for message in MESSAGES if not known(message)] == []
