from planner.api.calibrate import Calibration as Calibration
from planner.api.calibrate import calibrate as calibrate
from planner.api.compare import Comparison as Comparison
from planner.api.compare import compare as compare
from planner.api.diff import Difference as Difference
from planner.api.diff import diff as diff
from planner.api.explain import Explained as Explained
from planner.api.explain import explain as explain
from planner.api.given import Job as Job
from planner.api.memory import InferenceMemory as InferenceMemory
from planner.api.memory import TrainingMemory as TrainingMemory
from planner.api.memory import memory as memory
from planner.api.plan import Result as Result
from planner.api.plan import plan as plan
from planner.api.predict import Prediction as Prediction
from planner.api.predict import predict as predict
from planner.api.progress import StopSearch as StopSearch
from planner.api.size import Size as Size
from planner.api.size import size as size
from planner.api.sweep import Sweep as Sweep
from planner.api.sweep import sweep as sweep
from planner.api.validate import Validation as Validation
from planner.api.validate import validate as validate
from planner.errors import PlannerError as PlannerError
from planner.planning.optimize import Progress as Progress

__version__: str
