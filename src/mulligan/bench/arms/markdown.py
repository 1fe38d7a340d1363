"""A memory in one Markdown file: the text of each episode, newest first."""

from __future__ import annotations

from pathlib import Path

from mulligan.plugins import Episode, Task, episode_text, estimate

_RULE = "\n\n---\n\n"


class Markdown:
    """Recalls the top of the file for all tasks. tokens: about how many."""

    def __init__(self, tokens: int = 6000, *, folder: str) -> None:
        self._tokens = tokens
        self._file = Path(folder) / "MEMORY.md"
        self._file.touch()

    async def learn(self, episode: Episode) -> None:
        text = self._file.read_text(encoding="utf-8")
        self._file.write_text(f"{episode_text(episode)}{_RULE}{text}", encoding="utf-8")

    async def recall(self, task: Task) -> str:
        shown, left = list[str](), self._tokens
        for text in self._file.read_text(encoding="utf-8").split(_RULE):
            left -= estimate(text)
            if left < 0:
                break
            shown.append(text)
        return "\n\n".join(shown).strip()
