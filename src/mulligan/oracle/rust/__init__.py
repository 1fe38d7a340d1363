"""Rust tests: how they are read, compiled, run, told apart and put into words for `rust_tests`."""
