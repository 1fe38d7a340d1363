"""The one gate to language models and embedders."""
