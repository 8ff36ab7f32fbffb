"""Pictures of where queries look: text for a terminal, a figure, a page, a notebook's frame."""

from regard.pictures import figure as figure
from regard.pictures import sheet as sheet
from regard.pictures import terminal as terminal
from regard.pictures import text as text
from regard.pictures.beside import beside as beside
from regard.pictures.notebook import Shown as Shown
from regard.pictures.notebook import show as show
from regard.pictures.page import save_page as save_page
