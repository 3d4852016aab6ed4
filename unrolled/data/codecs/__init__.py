"""What turns texts, words, targets and vectors into numbers and back, fitted on training data."""
