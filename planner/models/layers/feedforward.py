"""Feed-forward blocks: the dense MLP and the mixture of experts (MoE)."""

from dataclasses import dataclass, replace

from planner.models.layers.parts import Block, Gemm, SavedTensor


@dataclass(frozen=True)
class Mlp(Block):
    """Dense feed-forward block of n_m = 2 matrices, 3 if gated (SwiGLU).

    P = n_m h f, biases (n_m - 1) f + h. A width of 0 is a layer without a
    feed-forward half: it holds and computes nothing.

    Args:
        hidden: Model width h. [1]
        ffn: Inner width f of one matrix. [1]
        gated: A gate matrix stands beside the up matrix.
        bias: Biases on all matrices.
        held: The layer holds the weights; False where an earlier one does.
    """

    hidden: int
    ffn: int
    gated: bool
    bias: bool = False
    held: bool = True

    @property
    def inner_width(self) -> int:
        """Columns of gate and up together: (n_m - 1) f."""
        return 2 * self.ffn if self.gated else self.ffn

    @property
    def sharded_parameters(self) -> int:
        """Matrices, the inner bias: n_m h f [+ (n_m - 1) f]; 0 of an earlier layer."""
        matrices = self.hidden * (self.inner_width + self.ffn)
        return self.held * (matrices + self.bias * self.inner_width)

    @property
    def replicated_parameters(self) -> int:
        """Bias of the down projection: [h]."""
        return self.held * self.bias * self.hidden

    def gemms(self) -> tuple[Gemm, ...]:
        """Gate and up as one GEMM (h -> (n_m - 1) f), then down (f -> h)."""
        if self.ffn == 0:
            return ()
        up = Gemm("fc1", self.hidden, self.inner_width, "column", "ffn")
        down = Gemm("fc2", self.ffn, self.hidden, "row", "ffn")
        return replace(up, held=self.held), replace(down, held=self.held)

    def saved(self) -> tuple[SavedTensor, ...]:
        """Output of gate and up, and of the activation.

        Returns:
            Tensors, widths per token; none of width 0. [1]
        """
        if self.ffn == 0:
            return ()
        return (
            SavedTensor("fc1_output", self.inner_width, "tensor"),
            SavedTensor("activation", self.ffn, "tensor"),
        )


@dataclass(frozen=True)
class Moe(Block):
    """Routed experts, of which a token meets top-k, and shared ones that all meet.

    P = E n_m h f_e + n_m h f_s + E h [+ E router bias] [+ h shared gate]
      [+ E ((n_m - 1) f_e + h) expert biases] [+ h router scale]
    or, behind a latent of width l, E n_m l f_e + 2 h l in place of E n_m h f_e.

    Args:
        hidden: Model width h. [1]
        experts: Routed experts E. [1]
        top_k: Routed experts k that one token meets. [1]
        ffn: Inner width f_e of one routed expert. [1]
        shared_ffn: Inner width f_s of the shared experts together; 0 for none. [1]
        gated: A gate matrix stands beside the up matrix, n_m = 3 (else 2).
        router_bias: One bias per expert, in its logit or to balance load.
        bias: Biases on all matrices of the routed experts.
        shared_gate: A column beside the router's that scales the shared experts.
        groups: Groups of neighbouring experts that the router chooses among first. [1]
        top_groups: Groups that the experts of one token come from. [1]
        shared_first: The family's code runs the shared experts before the routed ones.
        latent: Width l that routed experts read and write; None for h. [1]
        router_scale: A weight for each column of the router's input.
    """

    hidden: int
    experts: int
    top_k: int
    ffn: int
    shared_ffn: int
    gated: bool = True
    router_bias: bool = False
    bias: bool = False
    shared_gate: bool = False
    groups: int = 1
    top_groups: int = 1
    shared_first: bool = False
    latent: int | None = None
    router_scale: bool = False

    @property
    def routed_width(self) -> int:
        """Columns of a token that its experts get: l, or h."""
        return self.latent or self.hidden

    @property
    def router_width(self) -> int:
        """Columns of the router: E, and one for the gate of the shared experts."""
        return self.experts + self.shared_gate

    @property
    def expert(self) -> Mlp:
        """One routed expert.

        Returns:
            A dense block of width f_e. [1]
        """
        return Mlp(self.routed_width, self.ffn, self.gated, bias=self.bias)

    @property
    def shared(self) -> Mlp:
        """The shared experts as one dense block.

        Returns:
            A dense block of width f_s, which may be 0. [1]
        """
        return Mlp(self.hidden, self.shared_ffn, self.gated)

    @property
    def sharded_parameters(self) -> int:
        """Shared experts: n_m h f_s."""
        return self.shared.sharded_parameters

    @property
    def replicated_parameters(self) -> int:
        """Router: E h [+ h] [+ E] [+ h]; projections of a latent: [2 h l]."""
        vectors = self.router_bias * self.experts + self.router_scale * self.hidden
        matrices = self.router_width + 2 * (self.latent or 0)
        return matrices * self.hidden + vectors

    @property
    def expert_parameters(self) -> int:
        """Routed experts: E n_m h f_e, or E n_m l f_e."""
        return self.experts * self.expert.parameters

    @property
    def active_expert_parameters(self) -> int:
        """Routed experts that one token meets: k n_m h f_e, or k n_m l f_e."""
        return self.top_k * self.expert.parameters

    def gemms(self) -> tuple[Gemm, ...]:
        """Router (h -> E [+ 1]), latent if any, routed experts k times, shared ones."""
        h, k = self.hidden, self.top_k
        up, routed = self.expert.inner_width, self.routed_width
        return (
            Gemm("router", h, self.router_width, "replicated", "ffn"),
            *self._latent_gemms(),
            Gemm("expert_fc1", routed, up, "expert-column", "ffn", k),
            Gemm("expert_fc2", self.ffn, routed, "expert-row", "ffn", k),
            *self._shared_gemms(),
        )

    def _latent_gemms(self) -> tuple[Gemm, ...]:
        if self.latent is None:
            return ()
        return (
            Gemm("latent_in", self.hidden, self.latent, "replicated", "ffn"),
            Gemm("latent_out", self.latent, self.hidden, "replicated", "ffn"),
        )

    def _shared_gemms(self) -> tuple[Gemm, ...]:
        if self.shared_ffn == 0:
            return ()
        up = self.shared.inner_width
        return (
            Gemm("shared_fc1", self.hidden, up, "column", "ffn"),
            Gemm("shared_fc2", self.shared_ffn, self.hidden, "row", "ffn"),
        )

    def saved(self) -> tuple[SavedTensor, ...]:
        """Router logits and probabilities, permuted input, expert tensors, shared.

        A latent keeps the combined output, which its second projection reads.

        Left out, because the framework's dispatcher decides: the copy that was sent
        to the experts, and outputs kept to apply combine weights after fc2.

        Returns:
            Tensors; "expert" widths hold all k copies of a token. [1]
        """
        k, shared = self.top_k, self.shared
        tensors: tuple[SavedTensor, ...] = (
            SavedTensor("router", 2 * self.experts, "sequence", "fp32"),
            SavedTensor("expert_input", k * self.routed_width, "expert"),
            SavedTensor("expert_fc1_output", k * self.expert.inner_width, "expert"),
            SavedTensor("expert_activation", k * self.ffn, "expert"),
        )
        if self.latent is not None:
            kept = SavedTensor("expert_latent", self.latent, "sequence")
            tensors = (*tensors, kept)
        if self.shared_ffn == 0:
            return tensors
        return (
            *tensors,
            SavedTensor("shared_fc1_output", shared.inner_width, "tensor"),
            SavedTensor("shared_activation", shared.ffn, "tensor"),
        )
