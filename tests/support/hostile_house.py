"""A server over HTTP with a curious caller and, if there is one, a bystander with something to hide."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random

from hostile_secrets import BYSTANDER, MARK, Caller, like, lived, said, stored
from serving import Running, served

OURS, THEIRS = "ours-0123456789abcdef", "theirs-0123456789abcdef"
CURIOUS, NOBODY = "curious", "qqqqq-agent"
TOKENS = {"MULLIGAN_TOKEN": f"{CURIOUS}:{OURS} {BYSTANDER}:{THEIRS}"}
TAIL = "0123456789ab"


@dataclass
class House:
    """ids: of all that the bystander has, where there is one."""

    server: Running
    curious: Caller
    bystander: Caller
    ids: Sequence[str]


def room(folder: Path, name: str, settings: str = 'embedder = "none"') -> Path:
    """A folder of its own for a server, with these settings of [memory]."""
    (folder / name).mkdir()
    (folder / name / "mulligan.toml").write_text(f"[memory]\n{settings}\n")
    return folder / name


def store_of(folder: Path) -> Path:
    return folder / "mulligan.db"


@asynccontextmanager
async def house(
    folder: Path, revision: str, *, inhabited: bool, own: bool = True, more: Sequence[str] = ()
) -> AsyncGenerator[House]:
    """own: the curious one has lived a little, too. more: options of the server. Nothing that failed in the server goes unnoticed."""
    ids: list[tuple[str, str]] = []
    with served(
        "--rate", "0", "--drain", "1", *more, env={**TOKENS, "MULLIGAN_HOME": str(folder)}, cwd=folder
    ) as server:
        curious, bystander = Caller(server, OURS, revision), Caller(server, THEIRS, revision)
        try:
            await curious.begin()
            await bystander.begin()
            if inhabited:
                ids += await lived(bystander, said("life"))
                ids += await stored(store_of(folder), BYSTANDER, MARK, TAIL)
            if own:
                await lived(curious, "a life of ours")
            yield House(server, curious, bystander, those(ids))
        finally:
            await curious.close()
            await bystander.close()
        assert "Traceback" not in server.said(), server.said()


def those(ids: Sequence[tuple[str, str]]) -> Sequence[str]:
    return list(dict.fromkeys(id for name, id in ids if name not in ("agent_id", "agentId")))


def chosen(ids: Sequence[str]) -> Sequence[str]:
    """The bystander's name, and one id of each form."""
    forms = {like(id, Random(0)).rstrip("0123456789abcdef")[:9] + str(len(id)): id for id in ids}
    return [BYSTANDER, *forms.values()]


def nobodys(names: Sequence[str]) -> Sequence[str]:
    """Names of the same forms that nobody has."""
    chance = Random(7)
    return [NOBODY, *(like(id, chance) for id in names[1:])]
