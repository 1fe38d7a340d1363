"""The records, the state machine, the loop and the protocols of plug-ins. Standard library only, no I/O."""
