"""The Model Context Protocol's face of Mulligan: any agent can reflect, remember and recall."""
