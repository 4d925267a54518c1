"""What analysts do with a release: post-processing only, never a row."""
