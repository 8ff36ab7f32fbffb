"""Where any PyTorch model looks, seen without changing what it says."""

from regard.watching.mode import watch as watch
from regard.watching.probe import probe as probe
from regard.watching.seen import Seen as Seen
from regard.watching.watched import Watched as Watched
