"""The studio: what the store holds, as live pages in a browser. Needs the extra `studio`."""
