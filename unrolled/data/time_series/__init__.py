"""Series along time: their stamps, their table, their splits by time, and windows of them."""
