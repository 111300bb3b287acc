"""Fields of a config.json that change no size, and that launch files repeat."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Number = Annotated[float, Field(allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]


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
    """Numbers of norms, rotary positions and routers; absent or null is allowed."""

    model_config = ConfigDict(strict=True, extra="ignore", frozen=True)

    rope_theta: Positive | None = None
    partial_rotary_factor: Positive | None = None
    rope_scaling: Rotation | None = None
    rope_parameters: Rotation | None = None
    rms_norm_eps: Positive | None = None
    layer_norm_epsilon: Positive | None = None
    routed_scaling_factor: Number | None = None
