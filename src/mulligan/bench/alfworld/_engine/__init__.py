"""ALFWorld's engine: runs in processes of its own, made faster."""
