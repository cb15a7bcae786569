"""One page of a study: a single HTML file with its tables, their evidence, the check and the pictures."""

from reports.page.assemble import build_page, write_page
from reports.page.render import render_page

__all__ = ["build_page", "render_page", "write_page"]
