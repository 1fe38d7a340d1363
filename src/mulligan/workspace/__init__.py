"""Where command-line agents work: a git worktree, a copy, or in place. Each trial's state is a commit."""
