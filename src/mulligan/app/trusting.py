"""What `mulligan trust` shows and records for a project or an agent's folder."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from mulligan.agentfile.reading import read_agent
from mulligan.app.agents import agent_contents, agents_of, skill_folders, with_skill_files
from mulligan.app.config import Config, project_file, project_root, read_dotenv, read_project
from mulligan.app.trust import Contents, has_own_bank, risky, settings_contents
from mulligan.core.errors import InvalidInput
from mulligan.core.trusted import BANK, forget, is_foreign, note_bank


@dataclass(frozen=True)
class Asked:
    """What a person is asked to trust: a project and its agents, or one agent.

    Attributes:
        parts: what each of them would run or redirect.
        bank: a bank that came with the repository.
        ignored: variables of the `.env` that are never set.
        broken: agents whose files have errors, so that they cannot run.
    """

    folder: Path
    parts: tuple[Contents, ...]
    bank: Path | None = None
    ignored: tuple[str, ...] = ()
    broken: tuple[Path, ...] = ()

    @property
    def unsafe(self) -> str:
        return next((part.unsafe for part in self.parts if part.unsafe), "")

    @property
    def open(self) -> bool:
        """Whether there is anything that needs your trust."""
        return self.bank is not None or any(not part.trusted for part in self.parts)

    @property
    def hashes(self) -> str:
        """The value of MULLIGAN_TRUST with which this is trusted."""
        return ",".join(dict.fromkeys(part.hash for part in self.parts if part.items))

    def trust(self) -> None:
        """Trusts exactly what was checked. Raises `InvalidInput` if it can never be trusted, or if the trust cannot
        be recorded."""
        if self.unsafe:
            raise InvalidInput(f"{self.folder} cannot be trusted: {self.unsafe}.")
        try:
            for part in self.parts:
                part.trust()
            if self.bank is not None:
                note_bank(self.bank)
        except OSError as error:
            raise InvalidInput(
                f"Trust could not be recorded: {error}. Check that MULLIGAN_HOME is writable."
            ) from error

    def revoke(self) -> bool:
        """Removes the trust. Returns whether it was trusted."""
        removed = [forget("content", part.folder) for part in self.parts]
        return any([*removed, forget("bank", self.folder / BANK)])


def asked(start: Path) -> Asked:
    """What to trust in this folder: the agent that it is, or the nearest project upward with its agents.

    Runs nothing. Raises `InvalidInput` if there is neither, and for a broken project file.
    """
    here = start.expanduser().absolute()
    root = project_root(here)
    own = [here] if (here / "AGENT.md").is_file() else []
    if own and root != here:
        parts, broken = _contents_of_agents(own, Config(root))
        return Asked(here, tuple(parts), broken=tuple(broken))
    if root is None and not (here / "agents").is_dir() and not agents_of(Config(here)):
        raise InvalidInput(
            f"There is nothing to trust in {here}: it contains no agents/, and neither it nor a folder above it "
            "contains a mulligan.toml."
        )
    config, settings = read_project(root) if root else (Config(here), None)
    parts, broken = _contents_of_agents([*own, *agents_of(config).values()], config)
    parts = [*([settings] if settings else []), *parts]
    bank = (root or here) / BANK
    asks = root is not None and not os.environ.get("MULLIGAN_HOME") and not has_own_bank(root)
    set_names = {item.name.removeprefix(".env ") for part in parts for item in part.items}
    variables = read_dotenv(root / ".env") if root and (root / ".env").is_file() else {}
    ignored = [name for name in variables if name not in set_names]
    asked_bank = bank if asks and not is_foreign(bank) else None
    return Asked(root or here, tuple(parts), asked_bank, tuple(ignored), tuple(broken))


def trust(folder: Path) -> None:
    """Trusts a project with its agents, or an agent's folder, without asking. Raises `InvalidInput`."""
    asked(folder).trust()


def trust_settings(folder: Path) -> None:
    """Trusts a project file that was just written, and nothing that existed before. Raises as `trust` does."""
    if file := project_file(folder):
        risks = risky(read_project(folder)[0].values, folder)
        Asked(folder, (settings_contents(folder, file, risks, {}),)).trust()


def _contents_of_agents(folders: Iterable[Path], config: Config) -> tuple[list[Contents], list[Path]]:
    """What these agents would run or redirect, and the folders of those that cannot be read."""
    contents, broken = list[Contents](), list[Path]()
    for folder in folders:
        agent, _ = read_agent(folder, skill_folders(folder, config), strict=False)
        if agent is None:
            broken.append(folder)
        else:
            contents.append(agent_contents(with_skill_files(agent)))
    return contents, broken
