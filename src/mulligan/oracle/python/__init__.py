"""The oracle outside the sandbox: what `unit_tests` sends into it, and how it reads what comes back."""
