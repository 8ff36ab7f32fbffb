"""Which module called attention, and on which line: read from the Python call stack.

Walking up the frames needs no hooks, so it neither changes the model nor makes torch.compile
recompile it, and costs nothing where there is no attention. `frames.py` reads one frame,
`module_names.py` finds the module and the call of the model, and `graph_names.py` the module that a
node of an exported graph comes from.
"""

from regard.capture.call_site.module_names import (
    CallSite,
    ModelCall,
    ModuleNames,
    matches_name,
)

__all__ = ["CallSite", "ModelCall", "ModuleNames", "matches_name"]
