"""ALFWorld: the benchmark, its environment and its engine."""
