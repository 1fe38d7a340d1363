"""HotPotQA: the benchmark and the pages that are searched."""
