"""The words of a table as parts, and how each format writes them: escaped, so that any name may stand in them."""
