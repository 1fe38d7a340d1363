"""The lines of an array of tables in a TOML file."""

from hypothesis import given
from hypothesis import strategies as st

from mulligan.text.toml_lines import array_lines, key_lines

TEXT = """\
name = "x"
[[task]]
id = "a"
hidden = { answer = 1 }

[task.more]
deep = [
  1,
]
[other]
id = 2
[[ task ]]  # the second
prompt = '''
[[task]]
'''
id = "b"
"""


def test_each_table_has_its_own_lines() -> None:
    assert array_lines(TEXT, "task") == [
        {(): 2, ("id",): 3, ("hidden",): 4, ("more",): 6, ("more", "deep"): 7},
        {(): 12, ("prompt",): 13, ("id",): 16},
    ]
    assert array_lines(TEXT, "other") == []
    assert key_lines(TEXT)[("task", "id")] == 3


@given(st.lists(st.integers(0, 3), max_size=6))
def test_headers_are_found_whatever_stands_between_them(gaps: list[int]) -> None:
    text, wanted = "", list[int]()
    for gap in gaps:
        text += "# [[task]]\n" * gap + "[[task]]\nid = '[[task]]'\n"
        wanted.append(text.count("\n") - 1)
    assert [lines[()] for lines in array_lines(text, "task")] == wanted
