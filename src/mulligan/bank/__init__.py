"""The bank: lessons that outlive their episodes."""
