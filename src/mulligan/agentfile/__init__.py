"""Agents as files: AGENT.md, step files and skills, read and checked."""
