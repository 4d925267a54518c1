"""`python -m dpgram` is the command line."""

from dpgram.cli import main

main()
