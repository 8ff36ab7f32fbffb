"""Why something is not among the records of a capture: failures, exclusions, other softmaxes."""

from collections.abc import Sequence

from regard._support.text import count
from regard.capture.call_site import CallSite

RECOGNISED = (
    "scaled_dot_product_attention, nn.MultiheadAttention, flex_attention, regard's own attention, "
    "and softmax followed by a product with values"
)


class Diagnostics:
    """What was seen of a model and is not among the records of a capture.

    Args:
        model: the model's class.
        patterns: names or patterns of the modules to capture; all if there is none.

    Attributes:
        num_functions: number of torch functions that were called.
        excluded: the attention modules that the patterns leave out, in order.
        failures: by module and line, why attention could not be captured.
        values_not_found: softmaxes over positions that met no values: module and line of each.
        not_attention: softmaxes over anything else.
    """

    def __init__(self, model: str, patterns: Sequence[str] = ()) -> None:
        self._model, self._patterns = model, ", ".join(patterns)
        self.num_functions = 0
        self.excluded: dict[str, None] = {}
        self.failures: dict[str, str] = {}
        self.values_not_found: dict[str, None] = {}
        self.not_attention: dict[str, None] = {}

    def add_failure(self, site: CallSite, reason: str) -> None:
        """Note that a module called attention that could not be captured."""
        self.failures[f"{site.module_name} ({site.location})"] = reason

    def add_module(self, name: str, reason: str) -> None:
        """Note that a module ran where its attention cannot be seen; its parts are not listed."""
        listed = [module for module, known in self.failures.items() if known == reason]
        if not any(name == module or name.startswith(f"{module}.") for module in listed):
            self.failures[name] = reason

    def add_softmax(self, site: CallSite, is_over_positions: bool) -> None:
        """Note a softmax that did not become attention."""
        listed = self.values_not_found if is_over_positions else self.not_attention
        listed[f"{site.module_name} ({site.location})"] = None

    def lines(self) -> list[str]:
        """Return a line about the excluded modules, and one for each other entry."""
        return [*self._excluded_lines(), *self._seen_lines()]

    def _excluded_lines(self) -> list[str]:
        if not self.excluded:
            return []
        modules = count(len(self.excluded), "module")
        return [f"not kept: {modules} outside modules={self._patterns!r}"]

    def _seen_lines(self) -> list[str]:
        return [
            *(f"not captured: {site}: {reason}" for site, reason in self.failures.items()),
            *(f"softmax seen, values not found: {site}" for site in self.values_not_found),
            *(f"not attention over positions: {site}" for site in self.not_attention),
        ]

    def explain_nothing(self) -> str:
        """Return why nothing was captured."""
        if self.failures or self.values_not_found:
            return "\n".join(self._seen_lines())
        if not self.num_functions:
            return (
                f"nothing was captured: {self._model} was not called inside `with watch(...)`, "
                "or only in another thread"
            )
        if self.excluded:
            modules = ", ".join(self.excluded)
            return f"nothing was kept: modules={self._patterns!r} excludes {modules}"
        return (
            f"no attention was found in {self._model}; recognised are {RECOGNISED}. "
            "TorchScript and kernels of other packages are not; regard.recover_weights returns the "
            "weights of any function that is linear in its values"
        )
