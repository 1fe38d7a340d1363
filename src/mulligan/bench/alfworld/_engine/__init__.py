"""ALFWorld's engine: runs in processes of its own, made faster, with its texts in the reference's words."""
