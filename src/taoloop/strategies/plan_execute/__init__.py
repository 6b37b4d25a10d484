"""Plan-and-Execute: a plan as data, each step a run of its own, another plan where an observation breaks it. Pure."""

from taoloop.strategies.plan_execute.checks import normalised_plan, plan_problems, require_plan
from taoloop.strategies.plan_execute.step_strategy import PLAN_STEP, PlanStepStrategy
from taoloop.strategies.plan_execute.strategy import PlanExecute

__all__ = ["PLAN_STEP", "PlanExecute", "PlanStepStrategy", "normalised_plan", "plan_problems", "require_plan"]
