"""Vectors for readers of release files in other languages: small releases, and the numbers they must give."""
