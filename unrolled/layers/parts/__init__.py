"""What stands around bodies: embeddings, dropout, conditions, encoder-decoders, ensembles."""
