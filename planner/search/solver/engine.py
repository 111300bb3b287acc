"""CP-SAT as every proof uses it: one thread, a fixed seed, work in place of seconds."""

from concurrent.futures import ThreadPoolExecutor, wait

from ortools.sat.python import cp_model as cp

from planner.search.stop import Stop

LOOK = 0.1
"""Time between two looks at the limits while the solver runs. [s]"""


def engine(work: float) -> cp.CpSolver:
    """CP-SAT, set so that equal models have equal answers, and true ones.

    The part of the presolve that looks for constraints inside others is off. With it
    OR-Tools 9.15 calls some models infeasible that are not, and some bounds proven
    that do not hold (github.com/google/or-tools/issues/5293).
    """
    solver = cp.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = 0
    solver.parameters.max_deterministic_time = work
    solver.parameters.presolve_inclusion_work_limit = 0
    # Ctrl-C is the caller's: it ends the whole search with what is known.
    solver.parameters.catch_sigint_signal = False
    return solver


def answered(solver: cp.CpSolver, model: cp.CpModel, stop: Stop) -> object:
    """Solve in a second thread; this thread ends the solver when the search ends."""
    with ThreadPoolExecutor(max_workers=1) as beside:
        answer = beside.submit(solver.solve, model)
        try:
            while wait([answer], timeout=LOOK).not_done:
                if stop.reached:
                    solver.stop_search()
        except BaseException:
            solver.stop_search()
            raise
        return answer.result()
