"""The model `offline`: a small deterministic planner for any tools, in Chinese and English."""

from taoloop.models.offline.model import OfflineModel, decision_for

__all__ = ["OfflineModel", "decision_for"]
