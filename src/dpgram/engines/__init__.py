"""Where rows are encoded and summed: on this machine, or on many."""
