"""The multi-turn part of the Berkeley Function Calling Leaderboard (BFCL)."""
