"""Taking code out of a completion: what models really write around it, and what the reference breaks on."""

import ast
import gzip
import json
import textwrap
from pathlib import Path

import pytest
from each_row import each_row
from hypothesis import given
from hypothesis import strategies as st

from mulligan.text.python_code import extract_code

ADD = "def add(a, b):\n    return a + b"
DOCSTRING = '''\
import math


def area(r):
    """Area of a circle.

    ```
    area(1)
    ```
    ```python
    area(2)
    ```
    """
    return math.pi * r**2'''
FLAT_DOCSTRING = 'def f():\n    """\n```python\nf()\n```\n"""\n    return 1'
SAMPLES = (
    ADD,
    DOCSTRING,
    FLAT_DOCSTRING,
    "from typing import List\n\n\ndef total(xs: List[int]) -> int:\n    return sum(xs)\n\n\nprint(total([1, 2]))",
    'class Box:\n    text = """\n  kept\n    as it is\n"""\n\n    def get(self):\n        return self.text',
    "@staticmethod\ndef f(x):\n    # a comment\n\n    return x < 1 and x > 2",
    'def f(s):\n    return s.split("\\d")  # an odd escape',
    "async def main():\n    return PYTHON",
)
FENCES = (
    "```python\n{}\n```",
    "```py\n{}\n```",
    "```python3\n{}\n```",
    "```Python\n{}\n```",
    "``` python\n{}\n```",
    "```{{.python}}\n{}\n```",
    '```python title="solution.py"\n{}\n```',
    "```\n{}\n```",
    "```\npython\n{}\n```",
    "~~~\n{}\n~~~",
    "~~~python\n{}\n~~~",
    "````python\n{}\n````",
    "````\n{}\n````",
    "```python\n\n{}\n\n```  ",
    "[PYTHON]\n{}\n[/PYTHON]",
    "[PYTHON]\n```python\n{}\n```\n[/PYTHON]",
)
prose = st.text("abcxyz .,:;!?()'\n", max_size=60)
names = st.sampled_from(["a", "b", "value", "_x"])
lines = st.one_of(
    st.tuples(names, names).map(lambda p: f"{p[0]} = {p[1]} + 1"),
    st.tuples(names, names).map(lambda p: f"if {p[0]}:\n    {p[1]} = 0\n\nelse:\n    return {p[0]}"),
    names.map(lambda n: f'{n} = """\n```\n  {n}\n"""'),
    names.map(lambda n: f"for {n} in range(3):\n    print({n})  # ``` or ~~~"),
)
programs = st.lists(lines, min_size=1, max_size=5).map(
    lambda body: "def solve(a, b, value, _x):\n" + textwrap.indent("\n".join(body), "    ")
)


@given(code=st.sampled_from(SAMPLES) | programs, fence=st.sampled_from(FENCES), before=prose, after=prose)
def test_code_in_any_fence_with_prose_around_it_comes_back_equal(
    code: str, fence: str, before: str, after: str
) -> None:
    assert extract_code(f"{before}\n{fence.format(code)}\n{after}") == code


@given(code=st.sampled_from(SAMPLES), fence=st.sampled_from(FENCES[:-2]), before=prose, width=st.integers(1, 6))
def test_an_indented_fence_gives_the_code_without_its_margin(code: str, fence: str, before: str, width: int) -> None:
    block = textwrap.indent(fence.format(code), " " * width)
    assert extract_code(f"{before}\n{block}\n") == code


@given(code=st.sampled_from(SAMPLES), fence=st.sampled_from(FENCES))
def test_crlf_is_read_as_line_ends(code: str, fence: str) -> None:
    assert extract_code(f"Sure:\n{fence.format(code)}\nDone.".replace("\n", "\r\n")) == code


@given(text=st.text() | st.text("`~>.:# \n[]PYTHONdefax()=1'\"\\", max_size=200), name=st.none() | names)
def test_it_never_raises_and_makes_nothing_up(text: str, name: str | None) -> None:
    code = extract_code(text, name)
    assert code == code.rstrip()
    assert all(line.strip() in text for line in code.split("\n"))


@each_row(
    ("completion", "code"),
    [
        pytest.param("```python3\n" + ADD + "\n```", ADD, id="another tag"),
        pytest.param("```python\r\n" + ADD.replace("\n", "\r\n") + "\r\n```", ADD, id="crlf"),
        pytest.param("```python\n```\n```python\n" + ADD + "\n```", ADD, id="an empty first block"),
        pytest.param("import re\n\n" + ADD, "import re\n\n" + ADD, id="imports before a bare def"),
        pytest.param("Here:\nimport re\n\n" + ADD + "\nIt adds.", "import re\n\n" + ADD, id="and prose around"),
        pytest.param("```\nadd(1, 2)\n```\n```python\n" + ADD + "\n```", ADD, id="later fences"),
        pytest.param("def f():\n    return PYTHON", "def f():\n    return PYTHON", id="a name of [/PYTHON] letters"),
        pytest.param(ADD + "\n\n\nX = 1", ADD + "\n\n\nX = 1", id="code after the first return"),
    ],
)
def test_what_breaks_the_reference(completion: str, code: str) -> None:
    assert extract_code(completion) == code


@each_row(
    "completion",
    [
        pytest.param(f"```python\n{ADD}", id="never closed"),
        pytest.param(f"```python\n{ADD}\n\nThis adds the numbers.\nIt's short.", id="never closed, prose after"),
        pytest.param(f"```python\n{ADD}\n\nIt gives:\n```text\n3\n```", id="never closed, another block after"),
        pytest.param(f"Here it is: ```python\n{ADD}\n```", id="opened in a sentence"),
        pytest.param(f"```python\n{ADD}```", id="closed on the last line of code"),
        pytest.param(f"```python {ADD}\n```", id="opened on the first line of code"),
        pytest.param(f"```{ADD}\n```", id="opened on it without a tag"),
        pytest.param(f"````python\n{ADD}\n```", id="closed with fewer"),
        pytest.param(f"1. ```python\n{textwrap.indent(ADD, '   ')}\n   ```", id="in a list"),
        pytest.param(f"```python\n{textwrap.indent(ADD, '    ')}\n```", id="indented in the fence"),
        pytest.param(f"  ```python\n{ADD}\n  ```", id="only the fence indented"),
        pytest.param(f"````markdown\n```python\n{ADD}\n```\n````", id="a fence in a fence"),
        pytest.param(f"python\n{ADD}", id="a leading word"),
        pytest.param(f"Sure!\n\n{ADD}\n\nThat's all: it adds.", id="no fence"),
        pytest.param(f"Sure!\n\n{textwrap.indent(ADD, '    ')}\n\nThat's all.", id="no fence, indented"),
        pytest.param(f"[PYTHON]{ADD}", id="a wrapper never closed"),
        pytest.param(f"<think>```python\nx = (\n```</think>\n```python\n{ADD}\n```", id="thoughts before it"),
        pytest.param(">>> def add(a, b):\n...     return a + b\n", id="prompts"),
        pytest.param("Try:\n```pycon\n>>> def add(a, b):\n...     return a + b\n3\n```", id="prompts in a fence"),
        pytest.param("See:\n>>> def add(a, b):\n...     return a + b\nDone, yes.", id="prompts between prose"),
        pytest.param(f"```bash\npip install add\n```\n```\n{ADD}\n```", id="another language first"),
        pytest.param(f"{ADD}\n\nUse it:\n```\nadd(1, 2)\n```", id="only the usage is fenced"),
        pytest.param(f"```\n{ADD}\n```\nTest:\n```\nassert add(1, 2) == 3\n```", id="a test after it"),
        pytest.param(f"```\ndef add(a, b):\n    return a\n```\nNo:\n```\n{ADD}\n```", id="a corrected version"),
    ],
)
def test_the_function_is_found(completion: str) -> None:
    assert extract_code(completion, "add") == ADD
    assert extract_code(completion) == ADD


def test_one_line_between_fences() -> None:
    assert extract_code("Use ```def f(x): return x``` for it.") == "def f(x): return x"
    assert extract_code("Put it between ``` and ```:\n```\n" + ADD + "\n```") == ADD


def test_the_wanted_name_decides() -> None:
    text = (
        f"```python\ndef helper():\n    return 1\n```\n```python\n{ADD}\n```\n```python\ndef test_add():\n    pass\n```"
    )
    assert extract_code(text, "add") == ADD
    assert extract_code(text, "missing") == extract_code(text) == "def helper():\n    return 1"


def test_what_the_wanted_piece_needs_is_taken_along() -> None:
    text = (
        "Imports:\n```python\nimport math\nimport os\n```\nA helper:\n```python\nHALF = 0.5\n\n\ndef half(x):\n"
        "    return x * HALF\n\n\nprint(half(2))\n```\n"
        "Then:\n```python\ndef f(x):\n    return math.floor(half(x))\n```\n"
    )
    assert extract_code(text, "f") == (
        "import math\n\nHALF = 0.5\n\ndef half(x):\n    return x * HALF\n\n\ndef f(x):\n    return math.floor(half(x))"
    )


def test_definitions_in_blocks_of_another_piece_are_taken_along() -> None:
    helpers = "try:\n    import numpy\nexcept ImportError:\n    numpy = None\n\nif numpy:\n    def half(x):\n        return x / 2\nelse:\n    pass"
    usage = 'if __name__ == "__main__":\n    rest = half(3)\n    print(rest)'
    code = "def f(x):\n    return half(x) if numpy else rest"
    text = f"Helpers:\n```python\n{helpers}\n\n{usage}\n```\nThe function:\n```python\n{code}\n```"
    assert extract_code(text, "f") == f"{helpers}\n\n\n{code}"


def test_a_definition_in_a_block_is_found_by_its_name() -> None:
    code = "try:\n    from math import area\nexcept ImportError:\n    def area(r):\n        return 3 * r * r"
    assert extract_code(f"```python\n{code}\n```\nTo use it:\n```python\nprint(area(2))\n```", "area") == code


def test_decorators_come_along_with_what_they_decorate() -> None:
    cached = "from functools import cache\n\n\n@cache\ndef g(x):\n    return x"
    wanted = "def f(x):\n    return g(x)"
    code = extract_code(f"```\n{cached}\n```\n```\n{wanted}\n```", "f")
    assert code == f"from functools import cache\n\n@cache\ndef g(x):\n    return x\n\n\n{wanted}"


@pytest.mark.parametrize(
    "broken",
    [
        "def add(a, b):\n    return (a +",
        "def add(a, b)\n    return a + b",
        "def add(a, b):\n    if a &lt; b:\n        x",
    ],
)
def test_broken_code_comes_back_as_it_is(broken: str) -> None:
    assert extract_code(f"```python\n{broken}\n```\nUsage:\n```python\nadd(1, 2)\n```", "add") == broken
    assert extract_code(f"```python\n{broken}\n```\nUsage:\n```python\nadd(1, 2)\n```") == broken
    assert extract_code(broken, "add") == broken


def test_a_completion_cut_off_in_a_function_is_not_passed_off_as_whole() -> None:
    cut = "def add(a, b):\n    c = a\n    return (c +"
    assert extract_code(f"```python\n{cut}", "add") == cut
    assert extract_code(f"import re\n\n{cut}", "add") == f"import re\n\n{cut}"


def test_escaped_entities_are_left_alone() -> None:
    code = 'def f(s):\n    return s.replace("&lt;", "<")'
    assert extract_code(f"```python\n{code}\n```") == code


def test_without_code_the_stripped_text_comes_back() -> None:
    assert extract_code("  I cannot do that, sorry.\n") == "I cannot do that, sorry."
    assert extract_code("") == extract_code("\n \n") == ""
    assert extract_code("```json\n{not python}\n```") == "{not python}"
    assert extract_code("Run it:\nprint(1 + 1)\nand see.") == "print(1 + 1)"


@pytest.mark.light_cases(4)
@pytest.mark.parametrize(
    "hostile",
    [
        "(" * 50_000,
        "-" * 100_000 + "1",
        "x" + ".a" * 50_000,
        "```\n" * 3_000,
        "```python\nx = (\n" * 300,
        "def f(:\n" * 500,
        "x = (\n" * 2_000,
        "import a b\n" * 500,
        "def f():\n    '''\n```\n" * 300,
        "~" * 20_000 + "`",
        "[PYTHON]" * 10_000,
        "~~~py\0thon\ndef f(): \0\n~~~",
        "\ud800 ```\n\udfff\n```",
    ],
    ids=range(13),
)
def test_hostile_text_is_survived_in_time(hostile: str) -> None:
    assert isinstance(extract_code(hostile, "f"), str)


def test_the_samples_parse() -> None:
    assert all(ast.parse(sample.replace("\\d", "\\\\d")) for sample in SAMPLES)


HUMANEVAL = Path(__file__).parents[3] / "shared/data/programming/HumanEval.jsonl.gz"


@pytest.mark.slow
@pytest.mark.skipif(not HUMANEVAL.exists(), reason="needs ../shared/data")
def test_every_humaneval_solution_comes_back_equal() -> None:
    items = [json.loads(line) for line in gzip.decompress(HUMANEVAL.read_bytes()).splitlines()]
    assert len(items) == 164
    for number, item in enumerate(items):
        code = (item["prompt"] + item["canonical_solution"]).strip()
        said = f"Here is the solution:\n\n{FENCES[number % len(FENCES)].format(code)}\n\nIt's done in one pass."
        assert extract_code(said, item["entry_point"]) == code
        assert extract_code(f"Sure, here you go:\n\n{code}\n\nIt's done.", item["entry_point"]) == code


def test_a_helper_of_another_block_comes_after_imports_from_the_future() -> None:
    helper = "def half(x):\n    return x / 2"
    code = "from __future__ import annotations\n\n\ndef area(x: float) -> float:\n    return half(x) * x"
    answer = f"A helper:\n```python\n{helper}\n```\nThe function:\n```python\n{code}\n```"
    names: dict[str, object] = {}
    exec(compile(extract_code(answer, "area"), "answer", "exec"), names)
    assert eval("area(4.0)", names) == 8.0
