"""Graph databases to ask, and graphs to load into them."""
