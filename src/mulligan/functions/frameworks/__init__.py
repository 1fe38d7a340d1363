"""One file for each framework says how to run its agents, give them notes, and read their results.

None of the files imports its framework.
"""
