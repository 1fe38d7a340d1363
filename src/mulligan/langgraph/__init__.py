"""Reflexion on LangGraph: `ReflexionAgent`, questions to a knowledge graph, and parts for graphs of your own.

Needs the extra: pip install "mulligan[langgraph]", and "mulligan[kg]" for graph databases.
"""
