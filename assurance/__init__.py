"""What the library is examined for beyond its tests; `make assurance` runs it all and writes docs/assurance.md."""
