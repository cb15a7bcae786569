"""What a study would run, worked out without running it: its cells, their sizes, their trials."""

from study.plan.cells import Cell, StudyPlan
from study.plan.identity import identity_differences
from study.plan.planning import plan
from study.plan.views import plan_document, plan_json, render_plan

__all__ = ["Cell", "StudyPlan", "identity_differences", "plan", "plan_document", "plan_json", "render_plan"]
