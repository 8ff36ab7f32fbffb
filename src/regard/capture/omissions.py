"""What a capture does not have: modules that were excluded, failures, and other softmaxes."""

from regard.capture.call_site import CallSite

RECOGNISED = (
    "scaled_dot_product_attention, nn.MultiheadAttention, flex_attention, regard's own attention, "
    "and softmax followed by a product with values"
)


class Omissions:
    """What was seen of a model and is not among the records of a capture.

    Attributes:
        excluded: the attention modules that the patterns leave out, in order.
        failures: by module and line, why attention could not be captured.
        values_not_found: softmaxes over positions that met no values: module and line of each.
        not_attention: softmaxes over anything else.
    """

    def __init__(self) -> None:
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
        """Return a line for each, but for those excluded."""
        return [
            *(f"not captured: {site}: {reason}" for site, reason in self.failures.items()),
            *(f"softmax seen, values not found: {site}" for site in self.values_not_found),
            *(f"not attention over positions: {site}" for site in self.not_attention),
        ]

    def explain_nothing(self, model: str, patterns: str, has_run: bool) -> str:
        """Return why nothing was captured.

        Args:
            model: its class.
            patterns: of the modules to capture.
            has_run: whether any torch function was called.
        """
        if self.failures or self.values_not_found:
            return "\n".join(self.lines())
        if not has_run:
            return (
                f"nothing was captured: {model} was not called inside `with watch(...)`, "
                "or only in another thread"
            )
        if self.excluded:
            return f"nothing was kept: modules={patterns!r} excludes {', '.join(self.excluded)}"
        return (
            f"no attention was found in {model}; recognised are {RECOGNISED}. "
            "TorchScript and kernels of other packages are not; regard.recover_weights returns the "
            "weights of any function that is linear in its values"
        )
