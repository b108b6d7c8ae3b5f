"""Which requests a failed transfer takes down: those with a row that needs the expert, and no others.

A prefetch that fails before anybody waits for it takes nobody down: whoever needs the expert asks for it again.
"""

from __future__ import annotations

from hideaway.hw.engine.content import Content


class Failures:
    """Failed requests of a run.

    Attributes
    ----------
    seq_ids : set of int
        Sequences that failed in the forward that is going on.
    sentences : dict of seq_id to str
        Why each request of the run failed.
    """

    def __init__(self, content: Content) -> None:
        self._content = content
        self.seq_ids: set[int] = set()
        self.sentences: dict[int, str] = {}

    def begin(self) -> None:
        """Take up a forward. Changes state."""
        self.seq_ids.clear()

    def note(self, layer: int, expert: int, sentence: str) -> None:
        """Fail the requests of the forward that wait for this expert in this layer. Changes state."""
        for seq_id in self._content.readers(layer, expert):
            self.seq_ids.add(seq_id)
            self.sentences.setdefault(seq_id, f"request {seq_id} failed: {sentence}")
