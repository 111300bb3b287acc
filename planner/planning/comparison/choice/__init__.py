"""Choice of a purchase among candidates of known or open price."""
