"""Streams: sequences of tasks in one generated world whose hidden facts recur, and change once. Four families."""
