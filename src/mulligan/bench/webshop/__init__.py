"""WebShop: the benchmark, its shop and its environment."""
