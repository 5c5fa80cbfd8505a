"""Small changes to a module that its tests should notice: one comparison, condition, number, call.

Only what runs when the module is used is changed.  Annotations, decorators, keywords of a class
statement and f-strings stay: changed, they fail at import or mean the same.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

_COMPARISONS: dict[type[ast.cmpop], ast.cmpop] = {
    ast.Lt: ast.LtE(),
    ast.LtE: ast.Lt(),
    ast.Gt: ast.GtE(),
    ast.GtE: ast.Gt(),
    ast.Eq: ast.NotEq(),
    ast.NotEq: ast.Eq(),
    ast.Is: ast.IsNot(),
    ast.IsNot: ast.Is(),
    ast.In: ast.NotIn(),
    ast.NotIn: ast.In(),
}
_ARITHMETIC: dict[type[ast.operator], ast.operator] = {
    ast.Add: ast.Sub(),
    ast.Sub: ast.Add(),
    ast.Mult: ast.FloorDiv(),
    ast.FloorDiv: ast.Mult(),
    ast.Div: ast.Mult(),
    ast.LShift: ast.RShift(),
    ast.RShift: ast.LShift(),
    ast.BitOr: ast.BitAnd(),
    ast.BitAnd: ast.BitOr(),
}
_DECIDED_BY_ORDER = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)


@dataclass(frozen=True, slots=True)
class Mutation:
    """One change; `start` and `end` are bytes of the module."""

    line: int
    start: int
    end: int
    before: str
    after: str

    def applied(self, module: bytes) -> bytes:
        """The module with the change."""
        return module[: self.start] + self.after.encode() + module[self.end :]


def mutations(module: bytes) -> list[Mutation]:
    """Every change, in the order of the text."""
    found = _Finder(module)
    found.visit(ast.parse(module))
    once = dict.fromkeys(found.mutations)
    return sorted(once, key=lambda each: (each.start, each.end, each.after))


def is_python(module: bytes) -> bool:
    """Whether a changed module can be read at all."""
    try:
        ast.parse(module)
    except SyntaxError:
        return False
    return True


class _Finder(ast.NodeVisitor):
    def __init__(self, module: bytes) -> None:
        self._module = module
        self._starts = [0]
        for line in module.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))
        self._depth = 0
        self.mutations: list[Mutation] = []

    def _add(self, node: ast.expr | ast.stmt, after: str) -> None:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        start = self._starts[node.lineno - 1] + node.col_offset
        end = self._starts[node.end_lineno - 1] + node.end_col_offset
        before = self._module[start:end].decode()
        self.mutations.append(Mutation(node.lineno, start, end, before, after))

    def _replace(self, node: ast.expr, other: ast.expr) -> None:
        self._add(node, f"({ast.unparse(ast.copy_location(other, node))})")

    def _visit_all(self, nodes: list[ast.stmt] | list[ast.expr]) -> None:
        for node in nodes:
            self.visit(node)

    # what is left as it is

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Positions inside of an f-string are not those of the file."""

    def visit_Assert(self, node: ast.Assert) -> None:
        """It tells a type checker what holds anyhow."""

    def visit_keyword(self, node: ast.keyword) -> None:
        if node.arg != "strict":  # of zip: as an assertion, it says what holds anyhow
            self.visit(node.value)

    def visit_match_case(self, node: ast.match_case) -> None:
        if node.guard is not None:
            self.visit(node.guard)
        self._visit_all(node.body)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._visit_all(node.body)

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self._visit_all(node.args.defaults)
        self._visit_all([default for default in node.args.kw_defaults if default is not None])
        self._depth += 1
        self._visit_all(node.body)
        self._depth -= 1

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self.visit_FunctionDef(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None and ast.unparse(node.annotation) != "TypeAlias":
            self.visit(node.value)

    # what is changed

    def visit_Compare(self, node: ast.Compare) -> None:
        for at, operator in enumerate(node.ops):
            if type(operator) in _COMPARISONS:
                ops = [*node.ops[:at], _COMPARISONS[type(operator)], *node.ops[at + 1 :]]
                self._replace(node, ast.Compare(node.left, ops, node.comparators))
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        self._replace(node, ast.BoolOp(other, node.values))
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, ast.Not):
            self._replace(node, node.operand)
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        texts = [side for side in (node.left, node.right) if _is_text(side)]
        # outside of functions `|` makes a type, of texts `-` never runs
        is_type = isinstance(node.op, ast.BitOr) and not self._depth
        if type(node.op) in _ARITHMETIC and not texts and not is_type:
            self._replace(node, ast.BinOp(node.left, _ARITHMETIC[type(node.op)], node.right))
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, bool):
            self._add(node, str(not node.value))
        elif isinstance(node.value, int):
            self._add(node, str(node.value + 1))

    def visit_If(self, node: ast.If) -> None:
        if ast.unparse(node.test) == "TYPE_CHECKING":
            return
        self._negate(node.test)
        self.generic_visit(node)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        self._negate(node.test)
        self.generic_visit(node)

    def visit_While(self, node: ast.While) -> None:
        if not isinstance(node.test, ast.Constant):
            self._negate(node.test)
            self.visit(node.test)
        self._visit_all(node.body)
        self._visit_all(node.orelse)

    def visit_comprehension(self, node: ast.comprehension) -> None:
        for condition in node.ifs:
            self._negate(condition)
        self.generic_visit(node)

    def _negate(self, test: ast.expr) -> None:
        opposite = isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not)
        if isinstance(test, ast.Compare) and len(test.ops) == 1:
            opposite = not isinstance(test.ops[0], _DECIDED_BY_ORDER)
        if not opposite:  # another change says the same
            self._replace(test, ast.UnaryOp(ast.Not(), test))

    def visit_Return(self, node: ast.Return) -> None:
        value = node.value
        plain = isinstance(value, ast.Constant) and (value.value is None or value.value in (0, 1))
        if value is not None and not plain:
            self._add(node, "return None")
        self.generic_visit(node)

    def visit_Expr(self, node: ast.Expr) -> None:
        value = node.value.value if isinstance(node.value, ast.Await) else node.value
        if isinstance(value, ast.Call):
            if ast.unparse(value.func) == "assert_never":
                return
            self._add(node, "pass")
        self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> None:
        if all(isinstance(target, (ast.Attribute, ast.Subscript)) for target in node.targets):
            self._add(node, "pass")
        self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self._add(node, "pass")
        self.generic_visit(node)

    def visit_Raise(self, node: ast.Raise) -> None:
        self._add(node, "pass")
        self.generic_visit(node)

    def visit_Continue(self, node: ast.Continue) -> None:
        self._add(node, "pass")

    def visit_Break(self, node: ast.Break) -> None:
        self._add(node, "pass")

    def visit_Delete(self, node: ast.Delete) -> None:
        # that of a name says that an argument is not used, and changes nothing
        if not all(isinstance(target, ast.Name) for target in node.targets):
            self._add(node, "pass")


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (
        isinstance(node, ast.Constant) and isinstance(node.value, (str, bytes))
    )
