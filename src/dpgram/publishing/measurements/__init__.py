"""One file per kind: a public row function, its exact sum, its noise, its price, what is published of it."""
