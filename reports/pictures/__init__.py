"""Pictures of a study, from its records alone."""

from reports.pictures.draw import draw_pictures, write_pictures
from reports.pictures.picture import Drawn, Picture

__all__ = ["Drawn", "Picture", "draw_pictures", "write_pictures"]
