"""The words, the state machine, the loop and the seams. Standard library only, no I/O."""
