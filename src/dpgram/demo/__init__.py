"""The main job, end to end, on a bundled synthetic table."""
