"""Functions of the user's own as agents: `retry` calls one again with what failed; `memory` lends it the bank."""
