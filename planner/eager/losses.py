"""From the normalised stream to the loss, in the ways trainers do it."""

from __future__ import annotations

from collections.abc import Iterable

from planner.eager.case import EagerCase
from planner.eager.engine.checkpoint import checkpoint
from planner.eager.engine.storage import F32, I64, Tensor
from planner.eager.models.decoder import CausalModel
from planner.eager.modules import Linear
from planner.eager.ops.loss import cross_entropy, log_softmax, nll
from planner.eager.ops.pointwise import add, scalar, scale, tanh, to
from planner.eager.ops.products import cast, product
from planner.eager.ops.views import copied, narrow, reshape, split, transpose

Grad = Tensor | None
CHUNKS = 8
"""Pieces of the chunked loss. [1]"""


def logits_of(model: CausalModel, hidden: Tensor) -> Tensor:
    """Logits of the head, capped where the family caps them.

    Args:
        model: The model. [module]
        hidden: [b, s, h]. [tensor]

    Returns:
        [b, s, V]. [tensor]
    """
    logits: Tensor = model.lm_head(hidden)
    if model.scaled:
        logits = scale(logits)
    if model.final_cap:
        logits = scale(logits)
        logits = tanh(logits)
        logits = scale(logits)
    return logits


def causal_loss(logits: Tensor, ids: Tensor) -> Tensor:
    """Cross entropy of the next token in fp32, labels shifted by padding.

    Args:
        logits: [b, s, V]. [tensor]
        ids: [b, s]. [tensor]

    Returns:
        The loss. [tensor]
    """
    tape = logits.tape
    logits = to(logits, F32)
    b, s, v = logits.shape
    padded = tape.new((b, s + 1), I64)
    shifted = tape.new(ids.shape, I64) if b > 1 else padded
    return cross_entropy(reshape(logits, b * s, v), shifted)


def upcast_loss(logits: Tensor, ids: Tensor) -> Tensor:
    """Cross entropy of the next token from all logits but each row's last.

    Args:
        logits: [b, s, V] in fp32. [tensor]
        ids: [b, s]. [tensor]

    Returns:
        The loss. [tensor]

    References:
        transformers before 4.45, modeling_llama.py: ``logits.float()``, then
        ``logits[..., :-1, :].contiguous()``.
    """
    return cross_entropy(_shifted(logits), ids)


def half_loss(logits: Tensor, ids: Tensor) -> Tensor:
    """Cross entropy of 16-bit logits, whose log-probabilities autocast raises to fp32.

    The trainer has an fp32 copy of the logits until the loss is returned.

    Args:
        logits: [b, s, V] in 16 bits. [tensor]
        ids: [b, s]. [tensor]

    Returns:
        The loss. [tensor]

    References:
        modeling_qwen.py of Qwen-7B and modeling_baichuan.py of Baichuan2-7B pass logits
        on as they are; torch autocast_mode.cpp, nll_loss alone is on the fp32 list, as
        cross_entropy_loss names log_softmax's type; accelerate utils/operations.py,
        convert_outputs_to_fp32.
    """
    loss = nll(to(log_softmax(_shifted(logits)), F32), ids)
    to(logits, F32)
    return loss


def _shifted(logits: Tensor) -> Tensor:
    """Rows of all logits but each sequence's last: a view of one, a copy of several."""
    b, s, v = logits.shape
    part = narrow(logits, 1, s - 1)
    return reshape(copied(part) if b > 1 else part, b * (s - 1), v)


def plain_loss(logits: Tensor, ids: Tensor) -> Tensor:
    """Cross entropy in fp32 without a shift.

    Args:
        logits: [b, s, V]. [tensor]
        ids: [b, s]. [tensor]

    Returns:
        The loss. [tensor]
    """
    b, s, v = logits.shape
    return cross_entropy(reshape(to(logits, F32), b * s, v), ids)


def chunked_loss(hidden: Tensor, weight: Tensor, ids: Tensor) -> Tensor:
    """Head and cross entropy over pieces of the tokens, each recomputed in backward.

    The head is used through a transposed view, whose casts autocast does not keep.

    Args:
        hidden: [b, s, h]. [tensor]
        weight: The head [V, h]. [tensor]
        ids: [b, s]. [tensor]

    Returns:
        The loss. [tensor]
    """
    total = hidden.tape.new((), F32)

    def one(piece: Tensor) -> Tensor:
        return cross_entropy(to(_scores(piece, weight), F32), ids)

    for piece in _pieces(hidden):
        total = add(total, checkpoint(one, piece))
    return scale(total)


def _pieces(hidden: Tensor) -> tuple[Tensor, ...]:
    """Views of the tokens in as many pieces as a loss in chunks has."""
    tokens = hidden.shape[0] * hidden.shape[1]
    rows = reshape(hidden, tokens, hidden.shape[2])
    each = -(-tokens // CHUNKS)
    lengths = tuple(min(each, tokens - i) for i in range(0, tokens, each))
    return split(rows, 0, lengths)


def chunked_logits_loss(model: CausalModel, hidden: Tensor, ids: Tensor) -> Tensor:
    """Cross entropy of pieces of the logits, which all stand before the first is read.

    Args:
        model: The model. [module]
        hidden: [b, s, h]. [tensor]
        ids: [b, s]. [tensor]

    Returns:
        The loss. [tensor]

    References:
        torchtune 0.6.1 modules/transformer.py, chunked_output; modules/loss/
        ce_chunked_output_loss.py.
    """
    return _sum(hidden, ids, [logits_of(model, piece) for piece in _pieces(hidden)])


def chunked_head_loss(model: CausalModel, hidden: Tensor, ids: Tensor) -> Tensor:
    """Head and cross entropy of one piece of the tokens after the other, none anew.

    Tokens are copied, as those without a label leave the stream.

    Args:
        model: The model. [module]
        hidden: [b, s, h]. [tensor]
        ids: [b, s]. [tensor]

    Returns:
        The loss. [tensor]

    References:
        torchtune main modules/loss/cross_entropy_loss.py, LinearCrossEntropyLoss.
    """
    pieces = _pieces(copied(hidden))
    return _sum(hidden, ids, (logits_of(model, piece) for piece in pieces))


def _sum(hidden: Tensor, ids: Tensor, logits: Iterable[Tensor]) -> Tensor:
    """Loss of pieces of logits, each raised to fp32 by itself."""
    total = hidden.tape.new((), F32)
    for piece in logits:
        total = add(total, cross_entropy(to(piece, F32), ids))
        del piece
    return scale(total)


def _scores(piece: Tensor, weight: Tensor) -> Tensor:
    matrix = transpose(cast(transpose(weight, 0, 1)), 0, 1)
    return product(cast(piece), matrix)


def fused_loss(hidden: Tensor, weight: Tensor, ids: Tensor) -> Tensor:
    """Liger's fused linear cross entropy: gradients made in the forward, by pieces.

    A piece has next_pow2(tokens / ceil(V / h)) tokens. The gradient of the stream is
    kept and, where the head is trained, the gradient of the head's weight
    (linkedin/Liger-Kernel, src/liger_kernel/ops/fused_linear_cross_entropy.py).

    Args:
        hidden: [b, s, h]. [tensor]
        weight: The head [V, h]. [tensor]
        ids: [b, s]. [tensor]

    Returns:
        The loss. [tensor]
    """
    del ids
    tape, shape = hidden.tape, hidden.shape
    weight, hidden = cast(weight), cast(hidden)
    tokens, h, v = shape[0] * shape[1], shape[2], weight.shape[0]
    piece = 1 << (max(1, -(-tokens // -(-v // h))) - 1).bit_length()
    to_hidden = tape.new((tokens, h), hidden.dtype)
    to_weight = tape.new((v, h), weight.dtype) if weight.requires_grad else None
    losses = tape.new((tokens,), F32)
    _piece(tape.new((min(piece, tokens), v), hidden.dtype), weight, to_weight)
    loss = tape.new((), F32)
    del losses
    kept = [tape.save(to_hidden)]
    kept += [] if to_weight is None else [tape.save(to_weight)]
    trained = to_weight is not None
    del to_hidden, to_weight

    def backward(_: Tensor) -> tuple[Grad, Grad]:
        held = [take() for take in kept]
        grad = held[0].alias(shape, None)
        return _viewed(grad, shape), held[1] if trained else None

    return tape.record("fused_loss", loss, (hidden, weight), backward)


def _viewed(grad: Tensor, shape: tuple[int, ...]) -> Tensor:
    return Tensor(grad.tape, grad.storage, shape, grad.dtype)


def _piece(logits: Tensor, weight: Tensor, to_weight: Tensor | None) -> None:
    """Temporaries of one piece: its rows' gradient, then the weight's share."""
    tape = logits.tape
    rows = tape.new((logits.shape[0], weight.shape[1]), logits.dtype)
    del rows
    if to_weight is not None:
        tape.new(weight.shape, weight.dtype)


IN_PIECES = {"chunked_logits": chunked_logits_loss, "chunked_head": chunked_head_loss}
"""Losses that keep the log-probabilities of all pieces, by form. [-]"""
WHOLE = {"upcast": upcast_loss, "half": half_loss}
"""Losses of whole logits by form, where they are not transformers' own. [-]"""


def loss_of(
    case: EagerCase, model: CausalModel, ids: Tensor, hidden: Tensor, kept: list[Tensor]
) -> Tensor:
    """The loss as the case asks for it.

    Args:
        case: The case. [case]
        model: The model. [module]
        ids: [b, s]. [tensor]
        hidden: [b, s, h]. [tensor]
        kept: List that gets logits and loss if the caller keeps outputs. [tensors]

    Returns:
        The loss. [tensor]
    """
    head = model.lm_head
    assert isinstance(head, Linear)
    if case.loss == "chunked":
        return chunked_loss(hidden, head.weight, ids)
    if case.loss in IN_PIECES:
        return IN_PIECES[case.loss](model, hidden, ids)
    if case.loss == "liger":
        return fused_loss(hidden, head.weight, ids)
    logits = logits_of(model, hidden)
    if case.loss == "none":
        return scalar(logits, "sum")
    if case.zero and not case.flat:
        return plain_loss(logits, ids)
    logits = to(logits, F32) if case.loss == "upcast" else logits
    loss = WHOLE.get(case.loss, causal_loss)(logits, ids)
    if case.keep_outputs:
        kept += [logits, loss]
    return loss
