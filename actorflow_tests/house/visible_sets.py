"""Where is the order of something that is visibly a set looked at?

The order of a set depends on addresses and hash seeds, so whatever depends on it differs from process to process.  A
set is visible where it is written (``{a, b}``, ``set(…)``, a comprehension, ``one | other``), where a name, parameter
or attribute is annotated as one, and where a name or attribute is only ever bound to one.  Its order is looked at by
``for``, by what makes a sequence of it (``list``, ``tuple``, ``enumerate``, ``*``, ``join`` …) and by ``pop``; not by
``sorted``, ``len``, ``sum``, ``any``, ``all``, ``min``, ``max``, ``in``, or by what makes another set.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

__all__ = ("looks_at_the_order_of_a_set",)

_SET_TYPES = frozenset({"set", "frozenset", "Set", "AbstractSet", "MutableSet", "FrozenSet"})
_SET_METHODS = frozenset({"copy", "difference", "intersection", "symmetric_difference", "union"})
_BLIND = frozenset({"all", "any", "bool", "frozenset", "len", "max", "min", "set", "sorted", "sum"})
_BLIND_METHODS = frozenset(
    {"difference", "intersection", "isdisjoint", "issubset", "issuperset", "symmetric_difference", "union"}
)
_SEQUENCING = frozenset({"dict", "enumerate", "filter", "iter", "list", "map", "next", "reversed", "tuple", "zip"})
_SEQUENCING_METHODS = frozenset({"extend", "extendleft", "fromkeys", "join", "writelines"})
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


def looks_at_the_order_of_a_set(tree: ast.Module) -> list[int]:
    """Return the lines that do."""
    return sorted(set(_in_scope(tree, frozenset(), _attributes_of(tree))))


def _in_scope(scope: ast.AST, outer: frozenset[str], attributes: frozenset[str]) -> Iterator[int]:
    """Look through one function, class or module, and through those within it with what its names are."""
    bound, sets = _names_of(scope, outer, attributes)
    names = (outer - bound) | sets
    visible = _Visible(names, attributes)
    for node in _nodes_of(scope):
        if node is not scope and isinstance(node, (*_FUNCTIONS, ast.ClassDef)):
            yield from _in_scope(node, names, attributes)
        else:
            yield from visible.looked_at(node)


class _Visible:
    """Which expressions are visibly sets, given the names and attributes that are."""

    def __init__(self, names: frozenset[str], attributes: frozenset[str]) -> None:
        self.names, self.attributes = names, attributes

    def is_set(self, node: ast.AST | None) -> bool:
        match node:
            case ast.Set() | ast.SetComp():
                return True
            case ast.Call(func=ast.Name(id="set" | "frozenset")):
                return True
            case ast.Call(func=ast.Subscript(value=ast.Name(id="set" | "frozenset"))):  # frozenset[int]()
                return True
            case ast.Call(func=ast.Attribute(value=owner, attr=method)) if method in _SET_METHODS:
                return self.is_set(owner)
            case ast.BinOp(left=left, op=ast.BitOr() | ast.BitAnd() | ast.Sub() | ast.BitXor(), right=right):
                return self.is_set(left) or (not isinstance(node.op, ast.Sub) and self.is_set(right))
            case ast.IfExp(body=body, orelse=orelse):
                return self.is_set(body) or self.is_set(orelse)
            case ast.Name(id=name):
                return name in self.names
            case ast.Attribute(value=ast.Name(id="self" | "cls"), attr=attribute):
                return attribute in self.attributes
            case ast.NamedExpr(value=value):
                return self.is_set(value)
        return False

    def is_blind(self, func: ast.expr) -> bool:
        """Whether a call gives the same whatever the order of its arguments' elements."""
        match func:
            case ast.Name(id=name):
                return name in _BLIND
            case ast.Attribute(attr=method, value=owner):
                return method in _BLIND_METHODS or (method == "update" and self.is_set(owner))
        return False

    def makes_a_sequence(self, func: ast.expr) -> bool:
        match func:
            case ast.Name(id=name):
                return name in _SEQUENCING
            case ast.Attribute(attr=method):
                return method in _SEQUENCING_METHODS
        return False

    def looked_at(self, node: ast.AST) -> Iterator[int]:
        match node:
            case ast.For(iter=subject) | ast.AsyncFor(iter=subject) if self.is_set(subject):
                yield subject.lineno
            case ast.ListComp(generators=generators) | ast.DictComp(generators=generators):
                yield from (g.iter.lineno for g in generators if self.is_set(g.iter))
            case ast.GeneratorExp(generators=generators) if not getattr(node, "goes_to_the_blind", False):
                yield from (g.iter.lineno for g in generators if self.is_set(g.iter))
            case ast.Starred(value=subject, ctx=ast.Load()) if self.is_set(subject):
                yield subject.lineno
            case ast.Call(func=func, args=arguments):
                if self.is_blind(func) or getattr(node, "goes_to_the_blind", False):
                    for argument in arguments:
                        if isinstance(argument, ast.GeneratorExp) or (
                            isinstance(argument, ast.Call) and self.makes_a_sequence(argument.func)
                        ):
                            argument.goes_to_the_blind = True  # type: ignore[union-attr]  # children come later
                if self.makes_a_sequence(func) and not getattr(node, "goes_to_the_blind", False):
                    yield from (argument.lineno for argument in arguments if self.is_set(argument))
                if isinstance(func, ast.Attribute) and func.attr == "pop" and self.is_set(func.value):
                    yield func.lineno
            case ast.Assign(targets=[ast.Tuple() | ast.List()], value=subject) if self.is_set(subject):
                yield subject.lineno


def _nodes_of(scope: ast.AST) -> Iterator[ast.AST]:
    """Walk one scope, parents before children; scopes within it are given and not entered."""
    pending = list(ast.iter_child_nodes(scope))
    while pending:
        node = pending.pop(0)
        yield node
        if not isinstance(node, (*_FUNCTIONS, ast.ClassDef)):
            pending = [*ast.iter_child_nodes(node), *pending]


def _names_of(
    scope: ast.AST, outer: frozenset[str], attributes: frozenset[str]
) -> tuple[frozenset[str], frozenset[str]]:
    """Return the names that a scope binds, and those among them that are sets whenever they are bound."""
    verdicts: dict[str, list[bool]] = {}
    arguments = scope.args if isinstance(scope, _FUNCTIONS) else None
    if arguments is not None:
        for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
            verdicts.setdefault(argument.arg, []).append(_says_set(argument.annotation))
    visible = _Visible(outer, attributes)
    for node in _nodes_of(scope):
        match node:
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    for name in ast.walk(target):
                        if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store):
                            verdicts.setdefault(name.id, []).append(name is target and visible.is_set(value))
            case ast.AnnAssign(target=ast.Name(id=name), annotation=annotation):
                verdicts.setdefault(name, []).append(_says_set(annotation))
            case ast.NamedExpr(target=ast.Name(id=name), value=value):
                verdicts.setdefault(name, []).append(visible.is_set(value))
            case ast.For(target=target) | ast.AsyncFor(target=target) | ast.comprehension(target=target):
                for name in ast.walk(target):
                    if isinstance(name, ast.Name):
                        verdicts.setdefault(name.id, []).append(False)
    return frozenset(verdicts), frozenset(name for name, all_of in verdicts.items() if all(all_of))


def _attributes_of(tree: ast.Module) -> frozenset[str]:
    """Return the attributes of ``self`` that are annotated as sets, or only ever bound to one, in this module."""
    verdicts: dict[str, list[bool]] = {}
    nothing = _Visible(frozenset(), frozenset())
    for node in ast.walk(tree):
        match node:
            case ast.ClassDef(body=body):
                for statement in body:
                    if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
                        verdicts.setdefault(statement.target.id, []).append(_says_set(statement.annotation))
            case ast.AnnAssign(target=ast.Attribute(value=ast.Name(id="self"), attr=name), annotation=annotation):
                verdicts.setdefault(name, []).append(_says_set(annotation))
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name):
                        verdicts.setdefault(target.attr, []).append(nothing.is_set(value))
    # An annotation decides; later bindings of what is annotated need not be visible.
    return frozenset(name for name, all_of in verdicts.items() if all_of[0] or all(all_of))


def _says_set(annotation: ast.expr | None) -> bool:
    match annotation:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name in _SET_TYPES
        case ast.Subscript(value=value):
            return _says_set(value)
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):  # set[int] | None
            return _says_set(left) or _says_set(right)
        case ast.Constant(value=str() as text):
            return _says_set(ast.parse(text, mode="eval").body)
    return False
