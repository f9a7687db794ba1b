"""What belongs to the caller and not to a twin, and is as it was after each run."""
