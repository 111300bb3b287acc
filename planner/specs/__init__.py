"""Questions and answers of planner: pure, frozen data that cannot exist invalid."""
