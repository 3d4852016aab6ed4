"""What readers share: text files, tables, cells, pixels, names of files."""
