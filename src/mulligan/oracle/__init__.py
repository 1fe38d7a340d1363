"""Judges of programs from outside: Python and Rust."""
