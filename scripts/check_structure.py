"""Check the structure of the package, and exit with 1 if anything breaks a rule.

Usage: check_structure.py [cycles] [sizes] [classes] [names]   Checks what is named, or everything.
"""

import ast
import sys
from collections import Counter, defaultdict
from pathlib import Path

ROOT = Path(__file__).parent.parent / "src" / "taoloop"
MAX_MODULES, MAX_FILE_LINES, MAX_FUNCTION_LINES, MAX_VAGUE_PER_1000 = 20, 600, 60, 5.0
VAGUE_NAMES = """
    one given told said asked shown made found kept wanted wished held left meant seen heard read put taken lent begun
    drawn named others place places sign signs saying standing within inside beneath behind beside around ahead aside
    anew again
"""
VAGUE = frozenset(VAGUE_NAMES.split())
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def load_modules(root: Path) -> dict[str, tuple[Path, ast.Module]]:
    """The modules below a package folder by their dotted names."""
    modules = {}
    for path in sorted(root.rglob("*.py")):
        name = ".".join(path.relative_to(root.parent).with_suffix("").parts).removesuffix(".__init__")
        modules[name] = path, ast.parse(path.read_text(encoding="utf-8"))
    return modules


def find_cycles(modules: dict[str, tuple[Path, ast.Module]]) -> list[str]:
    """Modules that import each other, also inside functions and for type checkers only (Tarjan's algorithm)."""
    graph = {name: _imports(name, *module, modules.keys()) for name, module in modules.items()}
    index: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    cycles: list[str] = []

    def visit(name: str) -> None:
        index[name] = lowest[name] = len(index)
        stack.append(name)
        for target in sorted(graph[name]):
            if target not in index:
                visit(target)
            if target in stack:
                lowest[name] = min(lowest[name], lowest[target])
        if lowest[name] == index[name]:
            component = stack[stack.index(name) :]
            del stack[stack.index(name) :]
            if len(component) > 1:
                cycles.append(f"import cycle: {', '.join(sorted(component))}")

    for name in graph:
        if name not in index:
            visit(name)
    return cycles


def _imports(name: str, path: Path, tree: ast.Module, known: object) -> set[str]:
    targets: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            targets.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parents = name.split(".")[: -node.level + (path.name == "__init__.py") or None] if node.level else []
            base = ".".join([*parents, *filter(None, [node.module])])
            targets.update(f"{base}.{alias.name}" if f"{base}.{alias.name}" in known else base for alias in node.names)
    return {target for target in targets if target in known and target != name}


def find_large(modules: dict[str, tuple[Path, ast.Module]]) -> list[str]:
    """Folders, files and functions above their limits."""
    problems = []
    folders = Counter(path.parent for path, _ in modules.values() if path.name != "__init__.py")
    problems += [
        f"{path}: {count} modules, at most {MAX_MODULES}" for path, count in folders.items() if count > MAX_MODULES
    ]
    for path, tree in modules.values():
        if (lines := len(path.read_text(encoding="utf-8").splitlines())) > MAX_FILE_LINES:
            problems.append(f"{path}: {lines} lines, at most {MAX_FILE_LINES}")
        for node in ast.walk(tree):
            if isinstance(node, FUNCTIONS) and (lines := node.end_lineno - node.lineno + 1) > MAX_FUNCTION_LINES:
                problems.append(f"{path}:{node.lineno}: {node.name} has {lines} lines, at most {MAX_FUNCTION_LINES}")
    return problems


def find_duplicate_classes(modules: dict[str, tuple[Path, ast.Module]]) -> list[str]:
    """Public class names that are defined more than once."""
    classes = defaultdict(list)
    for path, tree in modules.values():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                classes[node.name].append(f"{path}:{node.lineno}")
    return [f"class {name} is defined more than once: {', '.join(at)}" for name, at in classes.items() if len(at) > 1]


def find_vague_names(modules: dict[str, tuple[Path, ast.Module]]) -> list[str]:
    """Modules, variables, parameters, functions and classes whose names say nothing of the field."""
    problems = [
        f"{path}: a vague name"
        for path, _ in modules.values()
        if VAGUE & set(path.stem.removeprefix("read_").split("_"))
    ]
    names: Counter[str] = Counter()
    for _, tree in modules.values():
        for node in ast.walk(tree):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                names[node.id.strip("_")] += 1
            elif isinstance(node, ast.arg):
                names[node.arg.strip("_")] += 1
            elif isinstance(node, (*FUNCTIONS, ast.ClassDef)):
                names[node.name.strip("_")] += 1
    vague = Counter({name: count for name, count in names.items() if name in VAGUE})
    if (rate := 1000 * vague.total() / names.total()) > MAX_VAGUE_PER_1000:
        problems.append(f"{rate:.1f} of 1,000 names are vague, at most {MAX_VAGUE_PER_1000}: {vague.most_common(8)}")
    return problems


CHECKS = {"cycles": find_cycles, "sizes": find_large, "classes": find_duplicate_classes, "names": find_vague_names}

if __name__ == "__main__":
    modules = load_modules(ROOT)
    problems = [problem for name in sys.argv[1:] or CHECKS for problem in CHECKS[name](modules)]
    sys.exit("\n".join(problems) or 0)
