"""Reports of benchmark runs: figures, statistics, plots and pages."""
