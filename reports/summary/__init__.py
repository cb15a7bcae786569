"""What the confirm trials of each cell come to: mean and spread, its name in a table, and its mark."""
