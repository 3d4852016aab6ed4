"""models: one file is one model name on the command line."""
