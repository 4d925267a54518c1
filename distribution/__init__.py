"""How releases of dpgram itself are made: the same bytes from the same sources, tried in a clean place."""
