"""Pictures of where queries look: text for a terminal, a figure for a page."""

from regard.pictures import figure as figure
from regard.pictures import terminal as terminal
from regard.pictures.beside import beside as beside
