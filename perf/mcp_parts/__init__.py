"""The parts of `perf/mcp_server.py`: a light client, the servers and their work, and the figures of a process."""
