"""Import paths that earlier releases documented, and where their modules are now.

A module that moved is found under its old path too, until 1.0: `from taoloop.runtime.replay import replay` gives what
`taoloop.runtime.after.replay` has. Names that changed with the move are found under their old names.
"""

from __future__ import annotations

from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.abc import Loader

MOVED_MODULES = {
    "taoloop.core.chain": "taoloop.core.stored_events",
    "taoloop.core.connection": "taoloop.core.cards.tool_card",
    "taoloop.core.limits": "taoloop.core.agent_spec",
    "taoloop.core.lint": "taoloop.core.cards.card_lint",
    "taoloop.core.redact": "taoloop.core.redaction.redactor",
    "taoloop.core.request": "taoloop.core.effects",
    "taoloop.core.spec": "taoloop.core.agent_spec",
    "taoloop.core.transcript": "taoloop.core.views.transcript",
    "taoloop.dialects.reply": "taoloop.dialects.standalone_reader",
    "taoloop.journals.holds": "taoloop.journals.base",
    "taoloop.journals.spending": "taoloop.journals.costs",
    "taoloop.models.fallback": "taoloop.models.retry",
    "taoloop.models.resolve": "taoloop.models.registry",
    "taoloop.models.retrying": "taoloop.models.retry",
    "taoloop.policy.judging": "taoloop.policy.judge",
    "taoloop.runtime.agent_file": "taoloop.config.agent_file",
    "taoloop.runtime.answering": "taoloop.runtime.approvals.inbox",
    "taoloop.runtime.approval": "taoloop.runtime.approvals.request",
    "taoloop.runtime.clock": "taoloop.runtime.engine.clock",
    "taoloop.runtime.doubt": "taoloop.runtime.approvals.inbox",
    "taoloop.runtime.fork": "taoloop.runtime.after.fork",
    "taoloop.runtime.given": "taoloop.runtime.tool_call_run",
    "taoloop.runtime.policy_file": "taoloop.config.agent_file",
    "taoloop.runtime.recovery": "taoloop.runtime.after.recovery",
    "taoloop.runtime.replay": "taoloop.runtime.after.replay",
    "taoloop.runtime.tool_file": "taoloop.config.tool_file",
    "taoloop.runtime.undo": "taoloop.runtime.after.undo",
    "taoloop.serve.gateway.described": "taoloop.serve.gateway.config.config_summary",
    "taoloop.serve.gateway.load": "taoloop.serve.gateway.config.gateway_file",
    "taoloop.serve.gateway.process": "taoloop.serve.gateway.server",
    "taoloop.serve.mcp.desk": "taoloop.serve.mcp.dispatcher",
    "taoloop.serve.mcp.offers": "taoloop.serve.mcp.server",
    "taoloop.strategies.base": "taoloop.core.effects",
    "taoloop.testing.drift": "taoloop.evals.trouble.drift",
    "taoloop.tools.base": "taoloop.tools.tool",
    "taoloop.tools.calculator": "taoloop.tools.builtin.calculator",
    "taoloop.tools.clock": "taoloop.tools.builtin.time_now",
    "taoloop.tools.commands": "taoloop.tools.builtin.commands",
    "taoloop.tools.declared": "taoloop.tools.from_card",
    "taoloop.tools.documents.locate": "taoloop.tools.documents.tool",
    "taoloop.tools.files": "taoloop.tools.builtin.files",
    "taoloop.tools.functions_json": "taoloop.tools.from_functions_json",
    "taoloop.tools.loaded": "taoloop.tools.toolbox",
    "taoloop.tools.memory": "taoloop.tools.builtin.memory",
    "taoloop.tools.openapi.meta": "taoloop.tools.openapi.document",
    "taoloop.tools.openapi.source": "taoloop.tools.openapi.settings",
    "taoloop.tools.registry": "taoloop.tools.toolbox",
    "taoloop.tools.sandbox_limits": "taoloop.tools.sandbox.confinement",
    "taoloop.tools.table": "taoloop.tools.builtin.lookup",
}
"""Old path: new path."""

RENAMED = {
    "taoloop.journals.holds": {"holds_of": "locks_of"},
    "taoloop.journals.spending": {"Spent": "CostRow"},
    "taoloop.runtime.answering": {
        "answer": "answer_approval",
        "note": "add_note",
        "waiting_calls": "pending_approvals",
        "Answered": "AnswerRecorded",
        "Waiting": "PendingApproval",
    },
    "taoloop.runtime.doubt": {"settle": "settle_doubt"},
    "taoloop.runtime.fork": {"fork": "make_fork"},
    "taoloop.runtime.given": {"GivenCalls": "ToolCallRuns"},
    "taoloop.runtime.undo": {"Undone": "UndoResult"},
    "taoloop.serve.gateway.described": {"describe": "config_summary"},
    "taoloop.serve.gateway.process": {"Process": "GatewayServer"},
    "taoloop.serve.mcp.desk": {"Desk": "CallDispatcher"},
    "taoloop.serve.mcp.offers": {"ToolOffer": "CardTool", "AgentOffer": "AgentAsTool"},
    "taoloop.tools.base": {"Output": "ToolOutput"},
    "taoloop.tools.documents.locate": {"Located": "CitedPassage"},
    "taoloop.tools.loaded": {"Loaded": "LoadResult", "Problem": "LoadProblem"},
}
"""Old path of a module: its names that changed, with the names that they have now."""


class MovedModuleFinder:
    """Finds modules under the paths that they had. It is asked last, so it never hides a module that exists."""

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None = None,  # noqa: ARG002  # importlib's signature
        target: ModuleType | None = None,  # noqa: ARG002  # the same
    ) -> ModuleSpec | None:
        """The specification of a module that moved; None for any other name."""
        return ModuleSpec(fullname, cast("Loader", _MovedModuleLoader())) if fullname in MOVED_MODULES else None


class _MovedModule(ModuleType):
    """A module under its old path.

    To import it hides a function of the same name that its package exports (`taoloop.core.transcript`). So it can be
    called as that function.
    """

    def __call__(self, *args: Any, **options: Any) -> Any:
        return getattr(self, self.__name__.rpartition(".")[2])(*args, **options)


class _MovedModuleLoader:
    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return _MovedModule(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        old_path = module.__name__
        renamed = RENAMED.get(old_path, {})
        target = import_module(MOVED_MODULES[old_path])

        def get_attribute(name: str) -> Any:
            return getattr(target, renamed.get(name, name))

        module.__doc__ = f"Moved to `{target.__name__}`."
        module.__getattr__ = get_attribute  # type: ignore[method-assign]  # PEP 562
