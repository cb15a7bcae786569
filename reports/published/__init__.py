"""Published numbers, kept as CSV files beside the code, and in what a cell of ours was run unlike them."""
