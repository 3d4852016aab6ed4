"""Search for good settings of a model: trials that are runs like others, chosen by what earlier ones scored."""
