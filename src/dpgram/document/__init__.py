"""What a release file says: its fields, what they mean, and the checks that they pass on loading."""
