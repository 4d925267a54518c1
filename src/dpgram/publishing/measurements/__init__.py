"""One file a kind: a public row function, its exact sum, the noise on it, what it costs, what is published."""
