"""What of the paper holds when it is run again."""
