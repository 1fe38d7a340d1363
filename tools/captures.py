"""Captures of commands in a real terminal (tmux), as text and, with colours, as pictures: what docs/terminal.md shows.

    python tools/captures.py --into docs/terminal

Needs tmux and the weights of the small local model (`mulligan models pull smollm2-135m`). That model runs `demo` once,
which takes a minute or more, and each capture replays its answers (`--demo FILE` takes an earlier export instead). The
others have scripted answers, so that each capture has a failure, a lesson and a solution.
"""

from __future__ import annotations

import argparse
import html
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from mulligan.core.home import home

SIZES = ((80, 24), (200, 50))
ROOT = Path(__file__).resolve().parent.parent
MODELS = Path(os.environ.get("MULLIGAN_MODELS") or home() / "models")
ANSWERS = """\
def add(a, b):
    return a - b
---
The tests call add with two numbers and expect their sum, but the attempt subtracts the second from the first. Return \
a + b, and try the first test by hand before answering.
---
def add(a, b):
    return a + b
"""
REPLIES = """\
6 times 7 is 48.
---
6 times 7 is not 48, which is 6 times 8. Add seven six times, and give that number.
---
6 times 7 is 42.
---
DONE
"""
TESTS = "assert add(1, 2) == 3\nassert add(0, 0) == 0\n"
TASKS = """\
[[task]]
id = "france"
prompt = "Name the capital of France."
contains = "Paris"

[[task]]
id = "peru"
prompt = "Name the capital of Peru."
contains = "Lima"
"""
COMMANDS: Mapping[str, str] = {
    "demo": "mulligan demo --model replay:demo.json",
    "solve": 'mulligan solve "Write a function add(a, b)." --tests tests.py --model scripted:answers.txt',
    "run": 'mulligan run answerer "What is 6 times 7?" --model scripted:replies.txt',
    "bench-run": "mulligan bench run mine.toml --model scripted:tasks.txt",
}
COLOURS = ("#24292f", "#b3261e", "#1a7f37", "#7d5a00", "#0a58ca", "#8b2fb8", "#0b6e75", "#57606a")
"""The eight colours of a terminal, dark enough for a light page."""


def main() -> None:
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--into", type=Path, default=ROOT / "docs" / "terminal", help="the folder for the captures")
    options.add_argument("--only", choices=COMMANDS, help="capture this command alone")
    options.add_argument("--demo", type=Path, metavar="FILE", help="an exported run of the demo to replay")
    chosen = options.parse_args()
    demo = ""
    if chosen.only in (None, "demo"):
        demo = chosen.demo.read_text(encoding="utf-8") if chosen.demo else recorded_demo()
    chosen.into.mkdir(parents=True, exist_ok=True)
    for name, command in COMMANDS.items():
        if chosen.only in (None, name):
            for columns, rows in SIZES:
                for colour in (True, False):
                    shown = captured(command, columns, rows, colour, demo)
                    file = chosen.into / f"{name}-{columns}x{rows}.{'svg' if colour else 'txt'}"
                    file.write_text(svg(shown, columns) if colour else f"{shown}\n", encoding="utf-8")
                    print(file)


def recorded_demo() -> str:
    """Run the demo with the small local model, and export its record."""
    with tempfile.TemporaryDirectory() as folder:
        env = os.environ | {"MULLIGAN_HOME": folder, "MULLIGAN_MODELS": str(MODELS), "MULLIGAN_THREADS": "1"}
        program = [sys.executable, "-m", "mulligan"]
        subprocess.run([*program, "demo", "--model", "local:smollm2-135m"], check=False, timeout=900, env=env)
        listed = subprocess.check_output([*program, "runs", "list", "--json"], text=True, timeout=60, env=env)
        run = json.loads(listed)[0]["run"]
        return subprocess.check_output([*program, "runs", "export", run], text=True, timeout=60, env=env)


def captured(command: str, columns: int, rows: int, colour: bool, demo: str) -> str:
    """What a terminal of this size holds after the command, with what went over its top; colours as ANSI sequences."""
    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder)
        (here / "answers.txt").write_text(ANSWERS, encoding="utf-8")
        (here / "demo.json").write_text(demo, encoding="utf-8")
        (here / "tests.py").write_text(TESTS, encoding="utf-8")
        (here / "mine.toml").write_text(TASKS, encoding="utf-8")
        (here / "tasks.txt").write_text("Paris\n---\nCusco\n---\nCusco is not the capital. Name Lima.\n---\nLima\n")
        (here / "replies.txt").write_text(REPLIES, encoding="utf-8")
        program = f"{shlex.quote(sys.executable)} -m mulligan"
        script = here / "run.sh"
        real = re.sub(r"^mulligan\b", program, command)
        script.write_text(f"printf '%s\\n' {shlex.quote(f'$ {command}')}\n{real}\ntmux wait-for -S done\nread -r _\n")
        set_here = {"MULLIGAN_HOME": f"{folder}/home", "MULLIGAN_THREADS": "1", "LANG": "C.UTF-8"}
        set_here |= {"MULLIGAN_MODELS": str(MODELS)} | ({} if colour else {"NO_COLOR": "1"})
        env = {name: value for name, value in os.environ.items() if not name.endswith(("_API_KEY", "TMUX"))}
        tmux = ["tmux", "-S", f"{folder}/socket", "-f", "/dev/null"]
        size = ["-x", str(columns), "-y", str(rows)]
        try:
            begin = [*tmux, "new-session", "-d", *size, "-c", folder, "sh", str(script)]
            subprocess.run(begin, check=True, timeout=30, env=env | set_here)
            subprocess.run([*tmux, "wait-for", "done"], check=True, timeout=600)
            seen = subprocess.run(
                [*tmux, "capture-pane", "-p", "-S", "-", *(["-e"] if colour else [])],
                check=True,
                capture_output=True,
                text=True,
                timeout=30,
            ).stdout
        finally:
            subprocess.run([*tmux, "kill-server"], check=False, timeout=30)
        return seen.replace(folder, "FOLDER").rstrip()


def svg(shown: str, columns: int) -> str:
    """The capture as a picture of text, with the colours of its ANSI sequences."""
    rows, colour = list[str](), ""
    for n, line in enumerate(shown.split("\n"), 1):
        text, colour = coloured(line, colour)
        rows.append(f'<text x="8" y="{3 + 17 * n}" xml:space="preserve">{text}</text>')
    width, height = 16 + columns * 8, 20 + 17 * len(rows)
    body = "\n".join(rows)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        'font-family="monospace" font-size="13" role="img">\n'
        f'<rect width="100%" height="100%" fill="#ffffff"/>\n<g fill="{COLOURS[0]}">\n{body}\n</g>\n</svg>\n'
    )


def coloured(line: str, colour: str) -> tuple[str, str]:
    """The line as SVG, and the colour that the next line begins with: tmux writes a colour once, where it changes."""
    parts = list[str]()
    for piece in re.split(r"(\x1b\[[0-9;]*m)", line):
        if found := re.fullmatch(r"\x1b\[([0-9;]*)m", piece):
            codes = [int(code or 0) for code in found[1].split(";")]
            colour = next((COLOURS[code - 30] for code in reversed(codes) if 30 <= code <= 37), "")
        elif piece:
            text = html.escape(piece)
            parts.append(f'<tspan fill="{colour}">{text}</tspan>' if colour else text)
    return "".join(parts), colour


if __name__ == "__main__":
    main()
