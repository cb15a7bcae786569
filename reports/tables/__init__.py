"""The tables of a study as files: LaTeX, Markdown, HTML, CSV, and a view for the terminal."""
