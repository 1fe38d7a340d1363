"""`python -m mulligan` is the command `mulligan`."""

from mulligan.cli.main import main

main()
