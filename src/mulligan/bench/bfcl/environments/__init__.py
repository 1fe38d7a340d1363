"""The environment of BFCL."""
