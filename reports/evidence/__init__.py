"""What lies behind the numbers of a table, cell by cell, down to the trials and the choice."""
