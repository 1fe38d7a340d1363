"""Pure helpers over text: code and tests in answers, JSON lines, truncation, secrets, terminal-safe text, pages."""
