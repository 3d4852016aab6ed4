"""What is on disk: directories, manifests, checkpoints, metrics, and how they are written without loss."""
