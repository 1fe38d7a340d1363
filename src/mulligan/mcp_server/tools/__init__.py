"""The tools that a server offers: one file, one tool, under the name `TOOL`."""
