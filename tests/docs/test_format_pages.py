"""The pages of docs/formats say what the code's own schemas say, and the examples on them are sound."""

import json
import re
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from format_pages import pages
from mulligan.cli.main import main

PAGES = Path(__file__).parents[2] / "docs" / "formats"


def test_there_is_a_page_for_each_format_and_no_other() -> None:
    assert {page.name for page in PAGES.iterdir()} == set(pages())


@pytest.mark.parametrize("name", pages())
def test_the_page_is_as_the_schemas_make_it(name: str) -> None:
    assert (PAGES / name).read_text(encoding="utf-8") == pages()[name], "run: make docs"


@pytest.mark.parametrize("form", ["agent", "step", "skill", "project"])
def test_every_key_of_the_schema_is_explained_on_its_page(form: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["schema", form])
    assert ended.value.code == 0
    schema = json.loads(capsys.readouterr().out)
    Draft202012Validator.check_schema(schema)
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    page = (PAGES / f"{form}.md").read_text(encoding="utf-8")
    for key, what in schema["properties"].items():
        assert re.search(rf"^#+ .*`{key}`", page, re.MULTILINE), f"{key} has no heading"
        assert what.get("description") or "$ref" in what
