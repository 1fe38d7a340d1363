"""The oracle of `unit_tests`: it stands outside the sandbox, sends calls into it, and reads the replies."""
