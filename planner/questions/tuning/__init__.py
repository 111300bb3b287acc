"""The flow of planner tune: tied plans as short runs, measured until one has won."""
