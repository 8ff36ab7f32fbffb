"""Training: from pairs of sentences to a run folder with a translator in it."""

from regard.training.interrupt import Interrupted as Interrupted
from regard.training.session import train as train
