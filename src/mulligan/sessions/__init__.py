"""What coding agents say and do in a session: one class for each agent, and what their failures and users teach."""
