"""objectives: losses and metrics, pure functions of tensors."""
