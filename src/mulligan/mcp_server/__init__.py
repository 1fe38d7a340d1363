"""Serves Mulligan over the Model Context Protocol, so that any agent can reflect, remember and recall."""
