"""Values, iterators, functions and changed arguments across the two processes, and tests that need one."""

from collections.abc import Awaitable, Callable

import pytest

from mulligan.core.records import Feedback

Judge = Callable[..., Awaitable[Feedback]]

OUTSIDE = {
    "a list that is changed": ("def f(a): a.append(1)", "a = [0]\nf(a)\nassert a == [0, 1]"),
    "a list inside": ("def f(g): g[0].append(1)", "r = [0]\ng = [r]\nf(g)\nassert r == [0, 1] and g == [r]"),
    "a sort in place": ("def f(a): a.sort()", "a = [2, 1]\nassert f(a) is None\nassert a == [1, 2]"),
    "a dict that is changed": ("def f(d):\n    d['b'] = d.pop('a')", "d = {'a': [1]}\nf(d)\nassert d == {'b': [1]}"),
    "a set that is changed": ("def f(*, s): s |= {2}", "s = {1}\nf(s=s)\nassert s == {1, 2}"),
    "arguments left alone": ("def f(a): return sorted(a)", "a = [2, 1]\nassert f(a) == [1, 2]\nassert a == [2, 1]"),
    "a generator": ("def f(n):\n    for i in range(n): yield i", "assert list(f(300)) == list(range(300))"),
    "an endless generator": (
        "def f():\n    n = 0\n    while True:\n        yield n\n        n += 1",
        "import itertools\nassert list(itertools.islice(f(), 3)) == [0, 1, 2]\ng = f()\nassert next(g) == 0",
    ),
    "a map and a zip": ("def f(a): return map(str, a)", "assert list(f([1, 2])) == ['1', '2']"),
    "an iterator handed over": ("def f(a): return sum(a)", "assert f(iter([1, 2])) == 3\nassert f(range(4)) == 6"),
    "a generator handed over": ("def f(a): return sum(a)", "assert f(x for x in (1, 2)) == 3"),
    "an object handed back": (
        "class P:\n    def __init__(s, x): s.x = x\ndef make(x): return P(x)\ndef f(p): return p.x",
        "assert f(make(3)) == 3\np = make(4)\nassert f(p) == 4 and p == p and p != make(4)",
    ),
    "its own function handed over": ("def sq(x): return x * x\ndef f(g, x): return g(x)", "assert f(sq, 3) == 9"),
    "a constant": ("LIMITS = {'a': (1, 2)}\ndef f(): return LIMITS", "assert LIMITS['a'] == f()['a'] == (1, 2)"),
    "imported by name": ("def f(x): return x + 1\nK = 3", "from solution import K, f as g\nassert g(K) == 4"),
    "imported as a module": ("def f(x): return x + 1\nK = 3", "import solution as s\nassert s.f(s.K) == 4"),
    "a helper in the tests": ("def f(x): return x", "def twice(x):\n    return 2 * f(x)\nassert twice(2) == 4"),
    "the tests' own name wins": (
        "def ok(x): return True\ndef f(x): return 1",
        "def ok(x): return x == 1\nassert ok(f(0))",
    ),
    "raises, as a helper": (
        "def f(x): raise KeyError('a')",
        "import pytest\nwith pytest.raises(KeyError) as info:\n    f(1)\nassert info.value.args == ('a',)",
    ),
    "a raised subclass": (
        "class E(ValueError): pass\ndef f(x): raise E('no')",
        "try:\n    f(1)\n"
        "    assert False, 'nothing raised'\nexcept ValueError as error:\n    assert 'no' in str(error)",
    ),
    "raises SystemExit": (
        "import sys\ndef f(): sys.exit(3)",
        "import pytest\nwith pytest.raises(SystemExit):\n    f()",
    ),
    "setup_method before a fixture, its end after the fixture's": (
        "def f(x): return x",
        "import pytest\nends = []\nclass TestF:\n"
        "    def setup_method(self):\n        self.one = 1\n"
        "    def teardown_method(self):\n        ends.append('method')\n"
        "    @pytest.fixture\n    def two(self):\n        yield self.one + 1\n        ends.append('fixture')\n"
        "    def test_a(self, two):\n        assert f(two) == 2\n"
        "def test_b():\n    assert f(ends) == ['fixture', 'method']",
    ),
    "a fixture of the module before setup_method": (
        "def f(x): return x",
        "import pytest\nseen = []\n@pytest.fixture(autouse=True)\ndef begun():\n    seen.append(1)\n"
        "class TestF:\n    def setup_method(self):\n        self.seen = list(seen)\n"
        "    def test_a(self):\n        assert f(self.seen) == [1]",
    ),
    "a fixture that returns a generator": (
        "def f(x): return sum(x)",
        "import pytest\n@pytest.fixture\ndef some():\n    return (n for n in (1, 2))\n"
        "def test_f(some):\n    assert f(some) == 3",
    ),
    "a default behind a star": ("def f(x): return x", "def test_f(*, one=1):\n    assert f(one) == 1"),
    "setup_class without classmethod": (
        "def f(x): return x",
        "class TestF:\n    def setup_class(cls):\n        cls.one = 1\n"
        "    def test_a(self):\n        assert f(self.one) == 1\n"
        "class TestG:\n    def setup_class(self):\n        self.two = 2\n"
        "    def test_a(self):\n        assert f(self.two) == 2",
    ),
    "approx": ("def f(x): return [x / 3]", "from pytest import approx\nassert f(1) == approx([0.333333], rel=1e-5)"),
    "parametrize": (
        "def f(x): return 2 * x",
        "import pytest\n@pytest.mark.parametrize(('x', 'y'), [(1, 2), pytest.param(2, 4, id='two')])\n"
        "def test_f(x, y):\n    assert f(x) == y",
    ),
    "skip": (
        "def f(x): return x",
        "import pytest\n@pytest.mark.skip(reason='later')\ndef test_a():\n    assert f(1) == 2\n"
        "def test_b():\n    assert f(1) == 1",
    ),
    "a test class": (
        "def f(x): return x",
        "class TestF:\n    def setup_method(self):\n        self.one = 1\n"
        "    def test_a(self):\n        assert f(self.one) == 1",
    ),
    "prints and input": (
        "def f():\n    print('!T')\n    try: return input()\n    except EOFError: return 'none'",
        "assert f() == 'none'",
    ),
    "shadowed names": ("def f(x): return x", "str = list = locals = repr = 3\nassert f(str) == 3"),
    "an array of numpy": (
        "import numpy as np\ndef f(a):\n    a[0] = 5\n    return np.outer(a, a) / 2",
        "import numpy as np\na = np.array([1, 2])\nout = f(a)\nassert out.shape == (2, 2) and out.dtype == np.float64\n"
        "assert np.allclose(out, [[12.5, 5], [5, 2]])\nassert a.tolist() == [5, 2]\nassert f(np.array([3.0])) == [[12.5]]",
    ),
    "an array of objects": (
        "import numpy as np\ndef f():\n    return np.array([None, (1, 2), 'a'], dtype=object)",
        "import numpy as np\nassert f().tolist() == [None, (1, 2), 'a'] and f().dtype == object",
    ),
    "a walrus": ("def f(x): return x", "assert (y := f(2)) == 2\nassert y == 2"),
    "typed code": ("from typing import List\ndef f(x: List[int]) -> int: return len(x)", "assert f([1]) == 1"),
    "a dataclass inside": (
        "from dataclasses import dataclass\n@dataclass\nclass P:\n    x: int\ndef f(): return P(3).x",
        "assert f() == 3",
    ),
}


@pytest.mark.light_cases(12)
@pytest.mark.parametrize("name", OUTSIDE)
async def test_passes_on_the_outside_path(judge: Judge, name: str) -> None:
    feedback = await judge(*OUTSIDE[name])
    assert (feedback.passed, feedback.score, feedback.notes) == (True, 1.0, ()), feedback.text


IN_PROCESS = {
    "a class": (
        "class Stack:\n    def __init__(self): self.items = []\n    def push(self, x): self.items.append(x)\n"
        "    def __len__(self): return len(self.items)",
        "s = Stack()\ns.push(1)\nassert len(s) == 1",
        "the tests use the candidate's class Stack",
    ),
    "a function seen only at run time": (
        "def f(g, x): return g(x)",
        "def double(x):\n    return 2 * x\nassert f(double, 2) == 4",
        "an argument is an object of type function",
    ),
    "an object of the tests": (
        "def f(p): return p.x",
        "class P:\n    x = 3\nassert f(P()) == 3",
        "an argument is an object of type P",
    ),
    "identity": ("def f(a): return a", "a = [1]\nassert f(a) is a", "line 2 of the tests compares identity"),
    "asynchronous": (
        "async def f(x): return x",
        "import asyncio\ndef test_f():\n    assert asyncio.run(f(2)) == 2\n"
        "async def test_g():\n    assert await f(3) == 3",
        "the tests import asyncio",
    ),
    "unittest": (
        "def f(x): return x",
        "import unittest\nclass Case(unittest.TestCase):\n    def setUp(self):\n        self.one = 1\n"
        "    def test_f(self):\n        self.assertEqual(f(self.one), 1)\n"
        "if __name__ == '__main__':\n    unittest.main()",
        "the tests import unittest",
    ),
    "unittest's order at the end of a class": (
        "def f(x): return x",
        "import unittest\nends = []\nclass A(unittest.TestCase):\n    @classmethod\n    def setUpClass(cls):\n"
        "        cls.one = 1\n        cls.addClassCleanup(ends.append, 'cleanup')\n"
        "    def test_f(self):\n        self.assertEqual(f(self.one), 1)",
        "the tests import unittest",
    ),
    "a shared fixture that rests on rows": (
        "def f(x): return 2 * x",
        "import pytest\n@pytest.fixture(scope='module', params=[1, 2])\ndef a(request):\n    return request.param\n"
        "@pytest.fixture(scope='module')\ndef b(a):\n    return 2 * a\n"
        "def test_f(a, b):\n    assert f(a) == b",
        "line 4 of the tests reads the attribute param",
    ),
    "a file": (
        "def f(file): return file.read(2)",
        "import io\nassert f(io.StringIO('abc')) == 'ab'",
        "an argument is an object of type StringIO",
    ),
    "what it prints": (
        "def f(): print('hi')",
        "import io, contextlib\nout = io.StringIO()\n"
        "with contextlib.redirect_stdout(out):\n    f()\nassert out.getvalue() == 'hi\\n'",
        "line 3 of the tests reads redirect_stdout",
    ),
}


@pytest.mark.parametrize("name", IN_PROCESS)
async def test_passes_in_process_and_says_so(judge: Judge, name: str) -> None:
    code, tests, why = IN_PROCESS[name]
    feedback = await judge(code, tests)
    assert feedback.passed is True, feedback.text
    assert feedback.notes == (f"in-process: can be forged ({why})",)
