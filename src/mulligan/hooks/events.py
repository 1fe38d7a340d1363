"""The earlier place of `mulligan.sessions.events`, for programs that import it."""

from mulligan.sessions.events import Call as Call
from mulligan.sessions.events import Notice as Notice
from mulligan.sessions.events import Said as Said
