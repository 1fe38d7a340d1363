"""The parts of `perf/mcp_server.py`: a light client, the servers and their work, what is read of a process."""
