"""Lessons as files and pages: exports, imports from other systems, Markdown."""
