"""What a benchmark run was worth: figures, statistics, plots and pages."""
