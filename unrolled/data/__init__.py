"""data: files become examples, examples become batches."""
