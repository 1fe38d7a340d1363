"""What replays published logs was here until 0.2."""

raise ImportError("mulligan.bench.programming.replay is now mulligan.bench.harness.replay: import from there.")
