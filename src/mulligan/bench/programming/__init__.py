"""Programming benchmarks: functions written from a description, judged by hidden tests."""
