"""Evaluators judge the attempts: one file, one evaluator."""
