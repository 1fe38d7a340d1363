"""Language models and embedders: open one by name, call it, count its cost."""
