"""Kinds of tasks that are found by clustering: the clusters, their names, and what is kept of them."""
