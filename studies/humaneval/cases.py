"""Which items of HumanEval the study takes: chosen before any model had seen one, and not changed since.

The rule: every fourth of the 164 items in the order of the file, beginning with the first. That is 41 items, spread
over the whole file, as the items grow longer towards its end.
"""

EVERY = 4
ITEMS = 164
CASES = [f"HumanEval/{number}" for number in range(0, ITEMS, EVERY)]
STRATEGIES = ("simple", "resample", "immediate-refinement", "reflexion")
"""The three after the first have the same number of attempts."""
TRIALS = 3
SEED = 0
