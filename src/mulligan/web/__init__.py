"""What faces that serve HTTP share: the address, the Host check, tokens, and uvicorn's server."""
