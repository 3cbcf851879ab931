"""A drafter of one's own in the loop: its guesses are written between windows, as material for the GPU's scan."""

from collections.abc import Sequence
from struct import pack

from pyweb.device import Device
from pyweb.plan.control import MAX_NODES
from pyweb.speculation.drafter import Drafter
from pyweb.speculation.tree import Tree

__all__ = ["SUGGESTED_TOKENS", "Suggestions", "suggested_text"]

SUGGESTED_TOKENS = 256
_SUFFIX = 8  # as many tokens as a match can have
_NOTHING = 0xFFFFFFFF


def suggested_text(suffix: Sequence[int], tree: Tree) -> list[int]:
    """`SUGGESTED_TOKENS` tokens that hold the tree's branches, the best first, each behind the sequence's end.

    A branch is found once the sequence ends as it begins, so one that was drafted a window ago still serves: its first
    tokens then belong to the suffix.
    """
    parents = set(tree.parents)
    out: list[int] = []
    for leaf in range(1, len(tree.tokens)):
        if leaf in parents:
            continue
        path, node = [], leaf
        while node > 0:
            path.append(tree.tokens[node])
            node = tree.parents[node]
        branch = [*suffix, *reversed(path), _NOTHING]
        if len(out) + len(branch) > SUGGESTED_TOKENS:
            break
        out += branch
    return out + [_NOTHING] * (SUGGESTED_TOKENS - len(out))


class Suggestions:
    """Feeds a drafter with what was committed and writes its trees to the end of the drafting memory.

    Args:
        buffer, offset: where the memory's last `SUGGESTED_TOKENS` tokens lie.
    """

    def __init__(self, device: Device, buffer: int, offset: int, drafter: Drafter, prompt: Sequence[int]):
        self._device, self._buffer, self._offset = device, buffer, offset
        self._drafter = drafter
        self._suffix: list[int] = []
        self.observe(prompt)

    def observe(self, tokens: Sequence[int]) -> None:
        """Takes committed tokens and writes the next suggestions.

        Raises:
            UsageError: the drafter's tree can't be verified.
        """
        if not tokens:
            return
        self._drafter.observe(list(tokens))
        self._suffix = [*self._suffix, *tokens][-_SUFFIX:]
        text = suggested_text(self._suffix, self._drafter.draft(MAX_NODES).check())
        self._device.write(self._buffer, self._offset, pack(f"<{SUGGESTED_TOKENS}I", *text))
