"""Prepared data on disk: the cache, its entries, examples in them, and fields that grow larger than memory."""
