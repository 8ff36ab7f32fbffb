"""A request that is refused: a status and one sentence."""


class Refused(Exception):
    """What the browser is told instead of an answer."""

    def __init__(self, status: int, sentence: str, retry_after: int | None = None) -> None:
        super().__init__(sentence)
        self.status = status
        self.sentence = sentence
        self.headers = {} if retry_after is None else {"Retry-After": str(retry_after)}
