"""Who judges an attempt: one file, one evaluator."""
