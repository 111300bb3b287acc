"""Published closed forms of GPT training: what the cost model is held against.

The prices of a plan come from the layers themselves; nothing here enters them.
"""

from typing import Literal

KorthikantiMode = Literal["tensor", "sequence", "selective", "both", "full"]
"""Tensor parallel alone; with sequence parallelism; with selective recompute; with
both; with full recompute."""

_KEPT: dict[KorthikantiMode, tuple[float, float, float]] = {
    "tensor": (10, 24, 5),
    "sequence": (0, 34, 5),
    "selective": (10, 24, 0),
    "both": (0, 34, 0),
    "full": (2, 0, 0),
}
"""Bytes per token and width: on every tensor rank, divided, and of the scores."""


def korthikanti_layer_bytes(
    *,
    tokens: int,
    hidden: int,
    heads: int,
    seq_len: int,
    tp: int,
    mode: KorthikantiMode,
) -> float:
    """Activations that one GPT layer keeps per micro-batch, in fp16 with dropout.

    With s b tokens and r, d, q by mode::

        s b h (r + d / t + q a s / (h t))

    where (r, d, q) is (10, 24, 5) for tensor parallelism, (0, 34, 5) with sequence
    parallelism, (10, 24, 0) with selective recompute, (0, 34, 0) with both, and
    (2, 0, 0) with full recompute.

    Args:
        tokens: Tokens of a micro-batch, s b. [token]
        hidden: Model width h. [1]
        heads: Attention heads a. [1]
        seq_len: Tokens of a sequence, s. [token]
        tp: Tensor degree t. [1]
        mode: Tensors that are split, and tensors that are recomputed. [text]

    Returns:
        Memory of one rank. [B]

    Leaves out the embedding, the head and its loss. It assumes unfused attention
    and a feed-forward width of 4 h.

    References:
        Korthikanti et al., arXiv:2205.05198, table 2.
    """
    whole, divided, scores = _KEPT[mode]
    per_width = whole + divided / tp + scores * heads * seq_len / (hidden * tp)
    return tokens * hidden * per_width


def korthikanti_activation_bytes(
    *,
    layers: int,
    tokens: int,
    hidden: int,
    heads: int,
    seq_len: int,
    tp: int,
    pp: int,
    vpp: int,
    mode: KorthikantiMode,
) -> float:
    """Activations of the first pipeline stage of a GPT model.

    A rank holds L / p layers of p micro-batches; interleaving adds chunks::

        L A_layer                        one chunk a rank
        L A_layer (1 + (p - 1) / (p v))  v > 1 chunks a rank

    Args:
        layers: Layers of the model, L. [1]
        tokens: Tokens of a micro-batch. [token]
        hidden: Model width. [1]
        heads: Attention heads. [1]
        seq_len: Tokens of a sequence. [token]
        tp: Tensor degree. [1]
        pp: Pipeline degree p. [1]
        vpp: Chunks per rank v. [1]
        mode: Tensors that are split, and tensors that are recomputed. [text]

    Returns:
        Memory of one rank of the first stage. [B]

    Leaves out what :func:`korthikanti_layer_bytes` does.

    References:
        Korthikanti et al., arXiv:2205.05198, section 4.2.3.
    """
    layer = korthikanti_layer_bytes(
        tokens=tokens, hidden=hidden, heads=heads, seq_len=seq_len, tp=tp, mode=mode
    )
    in_flight = 1 + (pp - 1) / (pp * vpp) if vpp > 1 else 1.0
    return layers * layer * in_flight


def gpt_step_flops(
    *, sequences: int, layers: int, seq_len: int, hidden: int, vocab: int
) -> float:
    """FLOPs of one step of a GPT model that recomputes nothing, full attention.

    ::

        72 B L s h^2 (1 + s / (6 h) + V / (12 h L))

    Args:
        sequences: Global batch B. [sequence]
        layers: Layers L. [1]
        seq_len: Tokens of a sequence, s. [token]
        hidden: Model width h. [1]
        vocab: Vocabulary V. [1]

    Returns:
        Model FLOPs. [FLOP]

    References:
        Korthikanti et al., arXiv:2205.05198, equation 7.
    """
    return _gpt_flops(72, 6, 12, sequences, layers, seq_len, hidden, vocab)


def gpt_step_flops_selective(
    *, sequences: int, layers: int, seq_len: int, hidden: int, vocab: int
) -> float:
    """FLOPs of one step with selective recompute, as their source prints them.

    ::

        72 B L s h^2 (1 + s / (3 h) + V / (12 h L))

    Args:
        sequences: Global batch B. [sequence]
        layers: Layers L. [1]
        seq_len: Tokens of a sequence, s. [token]
        hidden: Model width h. [1]
        vocab: Vocabulary V. [1]

    Returns:
        Hardware FLOPs. [FLOP]

    One more forward of the attention core is s / (4.5 h). The printed formula counts
    too much, and serves to reproduce the printed column alone.

    References:
        Korthikanti et al., arXiv:2205.05198, equation 8.
    """
    return _gpt_flops(72, 3, 12, sequences, layers, seq_len, hidden, vocab)


def gpt_step_flops_full(
    *, sequences: int, layers: int, seq_len: int, hidden: int, vocab: int
) -> float:
    """FLOPs of one step that recomputes every layer, full attention.

    ::

        96 B L s h^2 (1 + s / (6 h) + V / (16 h L))

    Args:
        sequences: Global batch B. [sequence]
        layers: Layers L. [1]
        seq_len: Tokens of a sequence, s. [token]
        hidden: Model width h. [1]
        vocab: Vocabulary V. [1]

    Returns:
        Hardware FLOPs. [FLOP]

    References:
        Narayanan et al., arXiv:2104.04473, equation 3.
    """
    return _gpt_flops(96, 6, 16, sequences, layers, seq_len, hidden, vocab)


def _gpt_flops(
    work: int,
    attention: int,
    logits: int,
    sequences: int,
    layers: int,
    seq_len: int,
    hidden: int,
    vocab: int,
) -> float:
    """FLOPs in the shape that the published forms share. [FLOP].

    ``work B L s h^2 (1 + s / (c_a h) + V / (c_v h L))``.
    """
    beside = seq_len / (attention * hidden) + vocab / (logits * hidden * layers)
    return work * sequences * layers * seq_len * hidden**2 * (1 + beside)


def parameter_flops_per_token(
    parameters: float, *, layers: int, hidden: int, seq_len: int
) -> float:
    """FLOPs per token counted from the parameters, as MosaicML's tables do.

    ::

        6 P + 12 L h s

    Args:
        parameters: All parameters P, embedding included. [1]
        layers: Layers L. [1]
        hidden: Width of the attention output, h. [1]
        seq_len: Tokens of a sequence, s. [token]

    Returns:
        Model FLOPs per token, full attention. [FLOP]

    The form counts the embedding's look-up as a product, unlike the layers' own count.

    References:
        MosaicML llm-foundry, scripts/train/benchmarking/README.md.
    """
    return 6 * parameters + 12 * layers * hidden * seq_len


def time_to_train(tokens: float, parameters: float, *, rate: float) -> float:
    """Time of a training run with full recompute.

    ::

        8 T P / X

    Args:
        tokens: Tokens of the run, T. [token]
        parameters: Parameters of the model, P. [1]
        rate: Hardware FLOP/s of all GPUs together, X. [FLOP/s]

    Returns:
        Time. [s]

    Raises:
        ValueError: The rate is not positive.

    Leaves out attention scores and the head.

    References:
        Narayanan et al., arXiv:2104.04473, equation 4.
    """
    if rate <= 0:
        raise ValueError(f"rate is {rate} FLOP/s; it must be more than 0")
    return 8 * tokens * parameters / rate
