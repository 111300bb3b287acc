"""Operations of one rank of a pipeline, one at a time."""

from typing import Literal, NamedTuple

Kind = Literal["F", "P", "B", "H", "W"]
"""Forward, paired forward, backward, held backward, weight gradient.

B is the whole backward, but of the inputs only where W exists. H is a B whose
result stays until the W after it is over: the two run as one whole backward. P
is a forward that runs with the H and W after it. The three start when the inputs
of forward and backward are there, and end together.
"""

FORWARD: tuple[Kind, ...] = ("F", "P")
"""Operations from whose start activations are held. [text]"""

BACKWARD: tuple[Kind, ...] = ("B", "H")
"""Operations that give the gradient of the inputs. [text]"""


class Op(NamedTuple):
    """One operation of a rank: its kind, its micro-batch and its chunk."""

    kind: Kind
    micro: int
    chunk: int
