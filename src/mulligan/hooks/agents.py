"""The earlier place of `mulligan.sessions.agents`, for programs that import it."""

from mulligan.sessions.agents import NAMES as NAMES
from mulligan.sessions.agents import agent as agent
