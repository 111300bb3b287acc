"""Fields of a config.json that change no size, and that launch files repeat."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

Number = Annotated[float, Field(allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]


Activation = Literal[
    "gelu",
    "gelu_10",
    "gelu_accurate",
    "gelu_fast",
    "gelu_new",
    "gelu_python",
    "gelu_python_tanh",
    "gelu_pytorch_tanh",
    "laplace",
    "leaky_relu",
    "linear",
    "mish",
    "prelu",
    "quick_gelu",
    "relu",
    "relu2",
    "relu6",
    "sigmoid",
    "silu",
    "swish",
    "tanh",
    "xielu",
]
"""Activations of transformers 5.6.0, activations.py, ACT2CLS."""


class Rotation(BaseModel):
    """Scaling of rotary positions, as in `rope_scaling` or `rope_parameters`."""

    model_config = ConfigDict(strict=True, extra="ignore", frozen=True)

    rope_theta: Positive | None = None
    factor: Positive | None = None
    low_freq_factor: Number | None = None
    high_freq_factor: Number | None = None
    original_max_position_embeddings: Positive | None = None
    beta_fast: Number | None = None
    beta_slow: Number | None = None
    mscale: Number | None = None
    mscale_all_dim: Number | None = None


class Details(BaseModel):
    """Norms, positions, routers and activations; absent or null is allowed."""

    model_config = ConfigDict(strict=True, extra="ignore", frozen=True)

    rope_theta: Positive | None = None
    partial_rotary_factor: Positive | None = None
    rope_scaling: Rotation | None = None
    rope_parameters: Rotation | None = None
    rms_norm_eps: Positive | None = None
    layer_norm_epsilon: Positive | None = None
    routed_scaling_factor: Number | None = None
    hidden_act: Activation | None = None
    hidden_activation: Activation | None = None
    activation_function: Activation | None = None
