"""Reads, compiles and runs Rust tests, and words the results, for `rust_tests`."""
