"""The pictures of README.md: a cast of a terminal, and the studio.

    python tools/pictures.py --into docs/pictures

Needs tmux and git for the cast, and Chromium for the studio. Nothing is drawn by hand: the cast is a run of `mulligan
solve` in tmux, whose agent is a small script, and the studio shows the record of that run.
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

from captures import COLOURS, ROOT, coloured

COLUMNS, ROWS = 104, 28
PROGRAM = f"{shlex.quote(sys.executable)} -m mulligan"
COMMAND = (
    'mulligan solve "Make the tests pass." --actor "command:sh agent.sh" --check "pytest -q --tb=no" --workspace .'
)
FILES = {
    "billing.py": "def total(a, b):\n    return str(a + b)\n",
    "test_billing.py": "from billing import total\n\n\ndef test_total():\n    assert total(5, 7) == '12 EUR'\n",
    # The agent reads the prompt: only the second one shows what pytest printed.
    "agent.sh": 'prompt=$(cat; echo "$@")\nsleep 1.5\ncase "$prompt" in\n'
    "*EUR*) new='f\"{a + b} EUR\"' ;;\n*) new='f\"{a + b}\"' ;;\nesac\n"
    "printf 'def total(a, b):\\n    return %s\\n' \"$new\" > billing.py\n",
}
LONGEST, END = 2.5, 4.0
"""Seconds: how long a frame stays at most, and the last one."""
WINDOW = "1280,860"


@dataclass(frozen=True)
class Frame:
    at: float
    text: str


def main() -> None:
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--into", type=Path, default=ROOT / "docs" / "pictures", help="the folder for the pictures")
    options.add_argument("--page", help="the studio's page (default: the run's)")
    chosen = options.parse_args()
    chosen.into.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        here, env = Path(folder), environment(Path(folder))
        frames = recorded(here, env)
        (chosen.into / "cast.svg").write_text(animated(frames), encoding="utf-8")
        photographed(chosen.page, chosen.into / "studio.png", env)
    for file in sorted(chosen.into.iterdir()):
        print(file, f"{file.stat().st_size:,} bytes")


def environment(folder: Path) -> dict[str, str]:
    """The variables of the run: a Mulligan home of its own, and no keys."""
    env = {name: value for name, value in os.environ.items() if not name.endswith(("_API_KEY", "TMUX"))}
    commands = Path(sys.executable).parent
    return env | {
        "MULLIGAN_HOME": f"{folder}/home",
        "LANG": "C.UTF-8",
        "PATH": f"{commands}{os.pathsep}{os.environ['PATH']}",
        "PYTHONDONTWRITEBYTECODE": "1",
    }


def recorded(folder: Path, env: dict[str, str]) -> list[Frame]:
    """What the terminal shows while the command runs, each change with its time."""
    project, done = folder / "billing", folder / "done"
    project.mkdir()
    for name, text in FILES.items():
        (project / name).write_text(text, encoding="utf-8")
    git = ["git", "-c", "user.name=you", "-c", "user.email=you@example.com", "-C", str(project)]
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "Begin"]):
        subprocess.run([*git, *words], check=True, timeout=30, env=env)
    script = folder / "run.sh"
    real = COMMAND.replace("mulligan", PROGRAM, 1)
    script.write_text(f"printf '%s\\n' {shlex.quote(f'$ {COMMAND}')}\n{real}\ntouch {done}\nread -r _\n")
    tmux = ["tmux", "-S", f"{folder}/socket", "-f", "/dev/null"]
    begin = [*tmux, "new-session", "-d", "-x", str(COLUMNS), "-y", str(ROWS), "-c", str(project), "sh", str(script)]
    frames = list[Frame]()
    try:
        subprocess.run(begin, check=True, timeout=30, env=env)
        began = time.monotonic()
        while time.monotonic() - began < 120:
            over = done.exists()
            shown = [*tmux, "capture-pane", "-p", "-e"]
            text = subprocess.run(shown, check=True, capture_output=True, text=True, timeout=30).stdout.rstrip()
            if text and (not frames or frames[-1].text != text):
                frames.append(Frame(time.monotonic() - began, text))
            if over:
                return frames
            time.sleep(0.1)
        raise SystemExit("The command did not end within 120 seconds.")
    finally:
        subprocess.run([*tmux, "kill-server"], check=False, timeout=30)


def animated(frames: list[Frame]) -> str:
    """The frames as one picture that plays and begins again; without animations it shows the last frame."""
    lasts = [min(after.at - one.at, LONGEST) for one, after in pairwise(frames)] + [END]
    whole, at, styles, groups = sum(lasts), 0.0, list[str](), list[str]()
    for n, (frame, seconds) in enumerate(zip(frames, lasts, strict=True)):
        begin, end = 100 * at / whole, 100 * (at + seconds) / whole
        hidden = f"0%,{begin:.2f}%{{opacity:0}}" if n else ""
        gone = f"{end:.2f}%,100%{{opacity:0}}" if n < len(frames) - 1 else "100%{opacity:1}"
        styles.append(f"@keyframes f{n}{{{hidden}{begin + 0.01:.2f}%,{end - 0.01:.2f}%{{opacity:1}}{gone}}}")
        styles.append(f"#f{n}{{animation:f{n} {whole:.1f}s step-end infinite}}")
        groups.append(f'<g id="f{n}" opacity="{int(n == len(frames) - 1)}">\n{lines_of(frame.text)}\n</g>')
        at += seconds
    width, height = 16 + COLUMNS * 8, 20 + 17 * ROWS
    motion = f"@media (prefers-reduced-motion: no-preference){{{''.join(styles)}}}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        'font-family="monospace" font-size="13" role="img">\n'
        "<title>mulligan solve: the first try fails its check, the second is shown why and passes</title>\n"
        f'<style>{motion}</style>\n<rect width="100%" height="100%" rx="8" fill="#ffffff" stroke="#d0d7de"/>\n'
        f'<g fill="{COLOURS[0]}">\n{chr(10).join(groups)}\n</g>\n</svg>\n'
    )


def lines_of(text: str) -> str:
    rows, colour = list[str](), ""
    for n, line in enumerate(text.split("\n"), 1):
        drawn, colour = coloured(line, colour)
        if drawn:
            rows.append(f'<text x="8" y="{6 + 17 * n}" xml:space="preserve">{drawn}</text>')
    return "\n".join(rows)


def photographed(page: str | None, file: Path, env: dict[str, str]) -> None:
    """The studio's page as a picture, drawn by Chromium without a window."""
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if browser is None:
        raise SystemExit("Chromium is not installed.")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    mulligan = [sys.executable, "-m", "mulligan"]
    if page is None:
        listed = subprocess.check_output([*mulligan, "runs", "list"], text=True, timeout=60, env=env)
        page = f"/runs/{listed.splitlines()[1].split()[0]}"
    studio = subprocess.Popen([*mulligan, "studio", "--port", str(port)], env=env, stderr=subprocess.DEVNULL)
    try:
        url = f"http://127.0.0.1:{port}{page}"
        wait_for(url)
        options = [
            "--headless",
            "--no-sandbox",
            "--hide-scrollbars",
            f"--window-size={WINDOW}",
            "--virtual-time-budget=3000",
        ]
        with tempfile.TemporaryDirectory() as profile:
            command = [browser, *options, f"--user-data-dir={profile}", f"--screenshot={file.resolve()}", url]
            subprocess.run(command, check=True, timeout=120, capture_output=True)
    finally:
        studio.terminate()
        studio.wait(30)


def wait_for(url: str) -> None:
    until = time.monotonic() + 60
    while True:
        try:
            with urlopen(url, timeout=10):
                return
        except (URLError, ConnectionError):
            if time.monotonic() > until:
                raise
            time.sleep(0.2)


if __name__ == "__main__":
    main()
