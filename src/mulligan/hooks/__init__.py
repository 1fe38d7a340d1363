"""The hooks of coding agents: what failed in a session and was overcome becomes a lesson, shown when it fails again."""
