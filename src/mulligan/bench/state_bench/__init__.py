"""STATE-Bench (Microsoft 2026): the benchmark, its environment and its learning track.

Their harness imports the retrieval hook from here: `from mulligan.bench.state_bench import retrieve_learnings`.
"""

from mulligan.bench.state_bench._learnings import retrieve_learnings

__all__ = ["retrieve_learnings"]
