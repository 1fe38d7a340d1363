"""Shared by everything that serves HTTP: the address, the Host check, tokens, and uvicorn's server."""
