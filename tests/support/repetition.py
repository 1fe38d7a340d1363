"""How often the long tests repeat what they do: once as often as fits into CI, and more often by MULLIGAN_TEST_REPEATS.

make long        # four times as often: a hundred kills where CI has twenty-five
"""

import os

TIMES = int(os.environ.get("MULLIGAN_TEST_REPEATS", "1"))


def repeats(count: int) -> int:
    """This many of something, times MULLIGAN_TEST_REPEATS."""
    return count * TIMES
