"""Pictures of attention: terminal, figures, a page and a notebook view."""

from regard.viz import figures as figures
from regard.viz import heatmap as heatmap
from regard.viz import terminal as terminal
from regard.viz import text as text
from regard.viz.notebook import TraceView as TraceView
from regard.viz.notebook import show as show
from regard.viz.page import save_page as save_page
from regard.viz.side_by_side import side_by_side as side_by_side
