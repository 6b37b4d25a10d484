"""The model `offline`: a demo planner without a network and without a language model, in English and Chinese."""

from taoloop.models.offline.planner import OfflineModel, decision_for

__all__ = ["OfflineModel", "decision_for"]
