"""Light stand-ins for what hooks need of `typing`, whose import takes longer than most of what a hook does.

A type checker sees the originals. Names that only annotations use are imported `if TYPE_CHECKING`.
"""

from __future__ import annotations

from operator import itemgetter

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import NamedTuple as NamedTuple
    from typing import cast as cast
else:

    def cast(kind, value):
        return value

    class NamedTuple(tuple):
        """A tuple with named fields and defaults, as the class annotates them."""

        __slots__ = ()

        def __init_subclass__(cls):
            cls._fields = tuple(cls.__annotations__)
            cls._defaults = {name: vars(cls)[name] for name in cls._fields if name in vars(cls)}
            for number, name in enumerate(cls._fields):
                setattr(cls, name, property(itemgetter(number)))

        def __new__(cls, *values, **named):
            given = dict(zip(cls._fields, values, strict=False))
            if len(given) < len(values) or given.keys() & named.keys() or named.keys() - set(cls._fields):
                raise TypeError(f"{cls.__name__} accepts only the fields {', '.join(cls._fields)}, each at most once")
            given = {**cls._defaults, **given, **named}
            if missing := [name for name in cls._fields if name not in given]:
                raise TypeError(f"{cls.__name__} needs {', '.join(missing)}")
            return tuple.__new__(cls, [given[name] for name in cls._fields])

        def __getnewargs__(self):
            return tuple(self)

        def __repr__(self):
            fields = ", ".join(f"{name}={value!r}" for name, value in self._asdict().items())
            return f"{type(self).__name__}({fields})"

        def _asdict(self):
            return dict(zip(self._fields, self, strict=True))

        def _replace(self, **changed):
            return type(self)(**(self._asdict() | changed))
