"""Runs a benchmark: finds its data, plans the run, takes its cases through the loop, scores and stores the results."""
