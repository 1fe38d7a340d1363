"""Embedders: texts to vectors, by a network on this machine, by a provider, and by hashes for tests."""
