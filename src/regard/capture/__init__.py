"""Where any PyTorch model looks, seen without changing what it says."""

from regard.capture.capture import Capture as Capture
from regard.capture.mode import watch as watch
from regard.capture.record import CapturedAttention as CapturedAttention
from regard.capture.recover import recover_weights as recover_weights
