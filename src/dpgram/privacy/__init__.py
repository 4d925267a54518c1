"""What privacy costs, how much noise it takes, and who has spent it."""
