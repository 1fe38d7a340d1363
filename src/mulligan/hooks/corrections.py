"""The earlier place of `mulligan.sessions.corrections`, for programs that import it."""

from mulligan.sessions.corrections import correction_in as correction_in
from mulligan.sessions.corrections import lasts as lasts
