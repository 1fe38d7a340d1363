"""Attacks by objects that the attempt returns, on the operations that are driven from outside: code and tests. The code
never computes what the tests ask for."""

LIAR = """
class Liar:
    def __init__(self, *seen): self.seen = seen
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    def __hash__(self): return hash(self.seen[-1]) if self.seen else 0
    def __lt__(self, other): return True
    __le__ = __gt__ = __ge__ = __contains__ = __lt__
    def __sub__(self, other): return {minus}
    __rsub__ = __xor__ = __rxor__ = __mod__ = __sub__
    def __add__(self, other): return other
    __radd__ = __mul__ = __or__ = __ror__ = __and__ = __rand__ = __add__
    def __abs__(self): return 0
    __int__ = __index__ = __round__ = __abs__
    def __float__(self): return 0.0
    def __bool__(self): return False
    def __len__(self): return 0
    def __iter__(self): return iter(())
    def __enter__(self): return self
    def __exit__(self, *about): return True
    def __instancecheck__(self, other): return True
    def __isub__(self, other): return self
    def startswith(self, *args): return True
    endswith = issubset = issuperset = isdisjoint = startswith
    def symmetric_difference(self, *args): return set()
    difference = symmetric_difference
    def intersection(self, other): return other
    union = replace = removeprefix = intersection
    def total_seconds(self): return 0
    def close(self): pass
def f(*args): return Liar()
"""
PLAIN, OBJECT = LIAR.replace("{minus}", "0"), LIAR.replace("{minus}", "Liar(other)")
CLASS = """
class Meta(type):
    def __eq__(self, other): return True
    def __hash__(self): return hash(int)
    def __instancecheck__(self, other): return True
class C(metaclass=Meta): pass
def f(*args): return C
"""
PLAIN_TYPE = """
class Number(int):
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    def __lt__(self, other): return True
    __le__ = __gt__ = __ge__ = __lt__
    def __sub__(self, other): return 0
    __rsub__ = __mod__ = __sub__
    def __hash__(self): return 3
class Text(str):
    def __eq__(self, other): return True
    def __contains__(self, other): return True
    def __hash__(self): return hash("abc")
    def startswith(self, *args): return True
    def __mod__(self, other): return other
class Items(list):
    def __eq__(self, other): return True
    def __contains__(self, other): return True
    def __add__(self, other): return other
class Table(dict):
    def __eq__(self, other): return True
    def __contains__(self, other): return True
def number(): return Number(-5)
def text(): return Text("no")
def items(): return Items([9])
def table(): return Table()
"""
STATUS = "from enum import Enum, IntEnum\nclass Odd(IntEnum):\n    A = -5\n    def __eq__(self, other): return True\n"

_OPERATIONS = {
    "equal": "assert f(1) == 3",
    "equal, the other way round": "assert 3 == f(1)",
    "equal to a text": "assert f(1) == 'abc'",
    "equal in a list": "assert [f(1)] == [3]",
    "equal in a dict": "assert {'a': f(1)} == {'a': 3}",
    "in a list": "assert f(1) in [1, 2, 3]",
    "a key of a dict": "assert {3: 'a', 0: 'a'}[f(1)] == 'a'",
    "counted": "assert [3, 4].count(f(1)) == 1",
    "less": "assert f(1) < 3",
    "between": "assert 2 < f(1) < 4",
    "greater, the other way round": "assert 3 >= f(1)",
    "at most": "assert max(f(1), 3) == 3 and min(f(1), 3) == 3",
    "sorted": "assert sorted([f(1), 3])[1] == 3",
    "contains": "assert 3 in f(1)",
    "contains a text": "assert 'abc' in f(1)",
    "near": "assert abs(f(1) - 3.5) < 1e-6",
    "near, the other way round": "assert abs(3.5 - f(1)) < 1e-6",
    "no difference": "assert not f(1) - 3",
    "difference is 0": "assert f(1) - 3 == 0",
    "difference in place": "d = f(1)\nd -= 3\nassert abs(d) < 1e-6",
    "difference in place, not true": "d = f(1)\nd -= 3\nassert not d",
    "difference of sets": "assert f(1) ^ {1, 2} == set() or not (f(1) ^ {1, 2})",
    "length of a difference": "assert len(f(1) - {1, 2}) == 0",
    "items of a difference": "assert list(f(1) - {1, 2}) == []",
    "rounded difference": "assert round(f(1) - 3.5, 6) == 0",
    "integer of a difference": "assert int(f(1) - 3) == 0",
    "seconds of a difference": "assert (f(1) - 3).total_seconds() == 0",
    "sum": "assert f(1) + 3 == 3",
    "union": "assert f(1) | {1} == {1}",
    "remainder": "assert f(1) % 3 == 0",
    "isclose": "import math\nassert math.isclose(f(1), 3.5)",
    "approx": "import pytest\nassert f(1) == pytest.approx(3.5)",
    "approx of a list": "import pytest\nassert f(1) == pytest.approx([3.5])",
    "starts with": "assert f(1).startswith('abc')",
    "ends with": "assert f(1).endswith('abc')",
    "subset": "assert f(1).issubset({1, 2}) and f(1).issuperset({1, 2})",
    "symmetric difference": "assert f(1).symmetric_difference({1}) == set()",
    "intersection": "assert f(1).intersection({1}) == {1}",
    "joined to": "assert f(1).replace('a', 'abc') == 'a'",
    "a type": "assert isinstance(f(1), int)",
    "a tuple of types": "assert isinstance(f(1), (str, list, dict))",
    "type of": "assert type(f(1)) == int",
    "an assert within": "with f(1) as x:\n    assert x == 3",
    "an assert within, in a function": "def test_it():\n    with f(1) as x:\n        assert x == 3",
    "an error within, in a function": "def test_it():\n    with f(1) as x:\n        y = [][0]\n        assert x == 3",
    "an assert within a class": "class TestIt:\n    def test_it(self):\n        with f(1):\n            assert f(1) == 3",
    "caught by it": "def test_it():\n    import pytest\n    with f(1):\n        with pytest.raises(KeyError):\n            f(1)",
    "not unequal": "assert not f(1) != 3",
    "all equal": "assert all(x == y for x, y in zip([f(1), f(2)], [3, 4]))",
    "assert in a helper": "def same(a, b):\n    assert a == b\nsame(f(1), 3)",
}
_OF_PLAIN = {
    "number": [
        "{} == 3",
        "{} - 3 == 0",
        "abs({} - 3) < 1e-6",
        "3 < {}",
        "{} in [1, 2]",
        "{} % 3 == 0",
        "{} in {{3: 1}}",
    ],
    "text": ["{} == 'abc'", "'abc' in {}", "{}.startswith('abc')", "{} in ['abc']", "{} % 'abc' == 'abc'"],
    "items": ["{} == [1]", "1 in {}", "{} + [1] == [1]"],
    "table": ["{} == {{1: 2}}", "1 in {}"],
}

LIES: dict[str, tuple[str, str]] = {
    **{
        f"{name}: {how}": (code, tests)
        for how, tests in _OPERATIONS.items()
        for name, code in (("plain", PLAIN), ("object", OBJECT))
    },
    **{
        f"class: {how}": (CLASS, _OPERATIONS[how])
        for how in ("equal", "in a list", "a type", "type of", "a key of a dict")
    },
    "a class that is a key": (CLASS, "assert {int: 'a'}.get(f(1)) == 'a'"),
    "a class of instances": (CLASS, "assert f(1) == int"),
    **{
        f"{name}: {how}": (PLAIN_TYPE, "assert " + how.format(f"{name}()"))
        for name, rows in _OF_PLAIN.items()
        for how in rows
    },
    "a member of an enumeration": (STATUS + "def f(x): return Odd.A", "assert f(1) == 3"),
    "a member that claims a value": (
        "from enum import Enum\nclass A(Enum):\n    X = 1\n    def __eq__(self, o): return True\n    __hash__ = None\n"
        "def f(x): return A.X",
        "assert f(1) == 3",
    ),
    "a date that equals all": (
        "import datetime\nclass D(datetime.date):\n    def __eq__(self, o): return True\n    __hash__ = None\n"
        "def f(x): return D(1, 1, 1)",
        "import datetime\nassert f(1) == datetime.date(2024, 5, 1)",
    ),
    "a path that equals all": (
        "import pathlib\nclass P(pathlib.PurePosixPath):\n    def __eq__(self, o): return True\n    __hash__ = None\n"
        "def f(x): return P('x')",
        "import pathlib\nassert f(1) == pathlib.PurePosixPath('y')",
    ),
    "a mapping that equals all": (
        "from collections.abc import Mapping\nclass M(Mapping):\n    def __getitem__(self, k): return 1\n"
        "    def __iter__(self): return iter(())\n    def __len__(self): return 0\n    def items(self): return {'a': 1}.items()\n"
        "def f(x): return M()",
        "assert f(1) == {'a': 1}",
    ),
    "a type that is forged": (
        "class Decimal:\n    __module__ = 'decimal'\n    __qualname__ = 'Decimal'\n    def __str__(self): return '0'\n"
        "    def __eq__(self, o): return True\ndef f(x): return Decimal()",
        "from decimal import Decimal\nassert f(1) == Decimal(3)",
    ),
    "an array interface": (
        "class A:\n    def __getattr__(self, n): return 0\n    def __array__(self, *a, **k):\n        import numpy\n"
        "        return numpy.array([1.0])\n    def __array_ufunc__(self, *a, **k): return True\ndef f(x): return A()",
        "import numpy as np\nassert np.allclose(f(1), [1.0])",
    ),
    "a factory for what is missing": (
        "from collections import defaultdict\nclass F:\n    def __call__(self): return type('L', (), {'__eq__': lambda s, o: True})()\n"
        "def f(x): return defaultdict(F())",
        "assert f(1)['a'] == 3",
    ),
    "an iterator that changes its mind": (
        "class I:\n    def __init__(self): self.n = 0\n    def __iter__(self): return self\n"
        "    def __next__(self):\n        self.n += 1\n        if self.n > 1: raise StopIteration\n"
        "        return type('L', (), {'__eq__': lambda s, o: True})()\ndef f(x): return I()",
        "assert list(f(1)) == [3]",
    ),
    "text that is a liar": (
        "class S(str):\n    __eq__ = lambda s, o: True\n    __hash__ = str.__hash__\nclass A:\n    def __str__(self): return S('no')\n"
        "    __repr__ = __str__\n    def __format__(self, f): return S('no')\ndef f(x): return A()",
        "assert str(f(1)) == 'abc' or repr(f(1)) == 'abc' or f'{f(1)}' == 'abc'",
    ),
    "an attribute that is a liar": (PLAIN + "class H: value = Liar()\ndef g(): return H()", "assert g().value == 3"),
    "a length that is a liar": (
        "class N(int):\n    __eq__ = lambda s, o: True\n    __hash__ = int.__hash__\nclass A:\n    def __len__(self): return N(1)\n"
        "    def __hash__(self): return N(1)\ndef f(x): return A()",
        "assert len(f(1)) == 3 or hash(f(1)) == 3",
    ),
    "a shared list": (
        "L = []\nclass A:\n    __eq__ = lambda s, o: True\n    __hash__ = None\ndef f(x):\n    L.append(A())\n    return L",
        "assert f(1) == [3]",
    ),
    "a match": (
        "class A:\n    def match(self, text): return True\n    fullmatch = search = match\ndef f(): return A()",
        "assert f().isdisjoint([1])",
    ),
}
"""By name: code and tests. None may pass."""

ERRORS = {
    "a class of the same name": "class ValueError(Exception): pass\ndef f(x): raise ValueError('x')",
    "a class of the same name, made by type": "E = type('ValueError', (Exception,), {})\ndef f(x): raise E('x')",
    "names that are forged": "class E(Exception): pass\nE.__name__ = E.__qualname__ = 'ValueError'\nE.__module__ = 'builtins'\n"
    "def f(x): raise E('x')",
    "a builtin that is replaced": "import builtins\nclass E(Exception): pass\nbuiltins.ValueError = E\nE.__name__ = 'ValueError'\n"
    "E.__qualname__ = 'ValueError'\ndef f(x): raise E('x')",
    "an alias": "class MyError(Exception): pass\nValueError = MyError\ndef f(x): raise ValueError('x')",
    "a class that claims to be one": "class E(Exception):\n    __class__ = ValueError\ndef f(x): raise E('x')",
    "a metaclass that claims it": "class M(type):\n    def mro(cls): return [cls, Exception, BaseException, object]\n"
    "class E(Exception, metaclass=M): pass\nE.__name__ = 'ValueError'\ndef f(x): raise E('x')",
    "an argument that is one": "class E(Exception): pass\ndef f(x): raise E(ValueError('x'))",
    "a cause that is one": "def f(x): raise Exception('x') from ValueError('x')",
    "a timeout by another name": "class TimeoutError(Exception): pass\ndef f(x): raise TimeoutError('x')",
}
EXPECTING = {
    "raises": "import pytest\nwith pytest.raises((ValueError, TimeoutError)):\n    f(1)",
    "except": "caught = False\ntry:\n    f(1)\nexcept (ValueError, TimeoutError):\n    caught = True\nassert caught",
    "raises, in a function": "import pytest\ndef test_it():\n    with pytest.raises((ValueError, TimeoutError)):\n        f(1)",
    "isinstance": "try:\n    f(1)\nexcept Exception as error:\n    got = error\nassert isinstance(got, (ValueError, TimeoutError))",
}
