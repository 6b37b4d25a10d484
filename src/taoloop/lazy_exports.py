"""Names that a package exports and imports when they are first used, so that importing the package stays cheap.

A public package is a table of its names, and the same imports for type checkers (`import A as A`, the form that exports
the name). The names in the `__all__` of a module are public; whatever else is in the package is internal and may change
at any time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ForwardRef

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def lazy_exports(
    package: dict[str, Any], exports: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """The `__getattr__`, `__dir__` (PEP 562) and `__all__` of a package.

    Args:
        package: The `globals()` of the package.
        exports: The exported names, separated by blanks, by the full name of the module that has them.
    """
    modules = {name: module for module, names in exports.items() for name in names.split()}

    def get_attribute(name: str) -> Any:
        if (module := modules.get(name)) is None:
            raise AttributeError(f"module {package['__name__']!r} has no attribute {name!r}")
        value = package[name] = getattr(__import__(module, fromlist=(name,)), name)
        return value

    def list_names() -> list[str]:
        return sorted({*package, *modules})

    return get_attribute, list_names, sorted(modules)


def lazy_types(types: Mapping[str, str]) -> dict[str, ForwardRef]:
    """Names for the annotations of a module that is too light to import what they mean.

    Type checkers have the real imports; `typing.get_type_hints` imports what it finds here, as it evaluates any other
    forward reference.

    Args:
        types: The names, separated by blanks, by the module that has them, as it is called within taoloop.
    """
    return {
        name: ForwardRef(f"__import__('taoloop.{module}', fromlist=('',)).{name}")
        for module, names in types.items()
        for name in names.split()
    }


class LazyGeneric:
    """A generic type, for annotations that give it parameters, in a module that is too light to import it.

    Args:
        module: The module that has it, as it is called within taoloop.
        name: Its name.
    """

    def __init__(self, module: str, name: str) -> None:
        self._module, self._name = module, name

    def __getitem__(self, parameters: Any) -> Any:
        """The type with these parameters; imports it."""
        return getattr(__import__(f"taoloop.{self._module}", fromlist=("",)), self._name)[parameters]
