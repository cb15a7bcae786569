"""Pictures of a study, from its records alone."""

from reports.pictures.draw import Drawn, draw_pictures, write_pictures
from reports.pictures.style import Picture

__all__ = ["Drawn", "Picture", "draw_pictures", "write_pictures"]
