"""Training: from pairs of sentences to a run folder with a translator in it."""

from regard.training.signals import Interrupted as Interrupted
from regard.training.trainer import train as train
