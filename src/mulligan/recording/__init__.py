"""The record of episodes: who may drive one, what happened in it, and which of its steps are done.

`solve`, clients over MCP and LangGraph graphs all keep their episodes through one `Ledger`.
"""
