"""Many runs under equal conditions, and their table."""
