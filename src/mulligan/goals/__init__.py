"""Goals: a check that ends the turn of a coding agent, run by Mulligan: design/132."""
