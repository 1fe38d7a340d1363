"""`mulligan doctor`: what works on this machine, and what would make more of it work."""

import click


@click.command()
def doctor() -> None:
    """What this machine offers: sandbox, store, models, Python; and what would raise it."""
