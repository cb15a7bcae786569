"""The shape of a table: which cells stand where, in the paper's own arrangement or in that of a layout file."""
