"""Mind2Web: steps of tasks on recorded web pages."""
