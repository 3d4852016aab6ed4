"""families: one file = how the layers of one family are lowered."""
