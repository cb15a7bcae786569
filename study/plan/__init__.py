"""What a study would run, worked out without running it: its cells, their sizes, their trials."""

from study.plan.cells import Cell, StudyPlan, resolve
from study.plan.change import BegunCell, StudyChange, in_short, study_change
from study.plan.identity import CellIdentity, identities
from study.plan.planning import plan
from study.plan.views import plan_document, plan_json, render_plan

__all__ = [
    "BegunCell",
    "Cell",
    "CellIdentity",
    "StudyChange",
    "StudyPlan",
    "identities",
    "in_short",
    "plan",
    "plan_document",
    "plan_json",
    "render_plan",
    "resolve",
    "study_change",
]
