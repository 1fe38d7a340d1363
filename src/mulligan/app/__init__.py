"""Composition: finds plug-ins, reads configuration, hands in the ports, runs and resumes."""
