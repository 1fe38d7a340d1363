"""Where episodes, events and journal steps are kept."""
