"""The flow of `planner predict`: the price of one given layout."""
