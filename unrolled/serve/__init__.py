"""serve: saved runs over HTTP. Every answer comes from a verb or a session."""
