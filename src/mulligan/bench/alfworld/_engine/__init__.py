"""ALFWorld's engine: started in processes of its own, made faster, and what is said to it and by it put in order."""
