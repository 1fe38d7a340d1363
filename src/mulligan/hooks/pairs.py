"""The earlier place of `mulligan.sessions.pairs`, for programs that import it."""

from mulligan.sessions.pairs import Found as Found
from mulligan.sessions.pairs import State as State
from mulligan.sessions.pairs import find as find
from mulligan.sessions.pairs import happened as happened
