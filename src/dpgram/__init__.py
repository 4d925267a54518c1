"""dpgram: publish one private Gram matrix, run every regression on it."""
