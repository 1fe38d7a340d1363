"""What every plug-in of `tools/` keeps to, whichever it is."""

import os
import re
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from mulligan.app.plugins import build, find, names, settings_of
from mulligan.core.errors import ToolError
from mulligan.core.protocols import Toolset
from mulligan.core.questions import Tool
from mulligan.core.records import Spec
from mulligan.sandbox.local import LocalSandbox

SERVER = str(Path(__file__).parent.parent / "support" / "mcp_plain_server.py")
NEEDS: dict[str, dict[str, Any]] = {
    "http_get": {"hosts": ["localhost"]},
    "mcp": {"name": "ex", "server": {"command": [sys.executable, SERVER]}},
}
WRONG: dict[str, dict[str, Any]] = {
    "read_file": {"path": "no/such.txt"},
    "write_file": {"path": "..", "content": ""},
    "list_files": {"path": "no/such"},
    "run_command": {"command": "true\0"},
    "http_get": {"url": "gopher://x"},
    "mcp": {},
}

every_tool = pytest.mark.parametrize("name", names("tools"))


@asynccontextmanager
async def made(name: str, folder: Path) -> AsyncGenerator[Toolset]:
    settings = dict(NEEDS.get(name, {}))
    if "folder" in settings_of(find("tools", name)):
        settings["folder"] = str(folder)
    tools: Toolset = build("tools", Spec(name, settings), {"sandbox": LocalSandbox()})
    try:
        yield tools
    finally:
        await tools.close()
        await tools.close()


def object_schema(tool: Tool) -> bool:
    Draft202012Validator.check_schema(tool.parameters)
    return tool.parameters["type"] == "object"


@every_tool
async def test_offers_what_a_model_can_call(name: str, tmp_path: Path) -> None:
    async with made(name, tmp_path) as tools:
        assert isinstance(tools, Toolset)
        offered = await tools.offer()
        assert offered
        assert all(re.fullmatch(r"[A-Za-z0-9_-]{1,64}", tool.name) for tool in offered)
        assert all(tool.description and object_schema(tool) for tool in offered)
        assert len({tool.name for tool in offered}) == len(offered)
        assert list(await tools.offer()) == list(offered)


@every_tool
async def test_ours_take_no_argument_that_they_do_not_know(name: str, tmp_path: Path) -> None:
    if name == "mcp":
        return
    async with made(name, tmp_path) as tools:
        (tool,) = await tools.offer()
        assert tool.name == name
        assert tool.parameters["additionalProperties"] is False
        assert all(about.get("description") for about in tool.parameters["properties"].values())


@every_tool
async def test_what_cannot_be_done_is_a_tool_error(name: str, tmp_path: Path) -> None:
    before = os.listdir(tmp_path)
    async with made(name, tmp_path) as tools:
        tool = "ex_fail" if name == "mcp" else name
        with pytest.raises(ToolError) as error:
            await tools.call(tool, WRONG[name])
        assert str(error.value)
    assert os.listdir(tmp_path) == before


def test_no_tool_is_missing_here() -> None:
    assert set(names("tools")) == set(WRONG)
