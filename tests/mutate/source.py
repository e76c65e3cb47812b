"""A C, C++ or CUDA source as a syntax tree, and which of its places can be switched at run time.

Parsing is tree-sitter's. What the kernels write before functions and loops (FA_DEVICE, FA_UNROLL) is macros that are
no syntax: they are blanked before parsing, so that every offset stays true."""
import re

try:
    import tree_sitter
    import tree_sitter_c
    import tree_sitter_cpp
except ImportError as absent:
    tree_sitter, WHY_ABSENT = None, str(absent)

BLANKED = re.compile(rb"\b(FA_DEVICE|FA_BOTH|FA_CALLED|FA_NO_UNROLL|FA_UNROLL_2|FA_UNROLL_BY\([^()]*\)|FA_UNROLL|typename|"
                     rb"__attribute__\(\([^()]*(\([^()]*\))?\)\))(?=\s|$)|^#pragma[^\n]*", re.M)
# Below these nothing is a run-time expression, or it has to be a constant.
CONSTANT = {"template_argument_list", "template_parameter_list", "static_assert_declaration", "array_declarator", "enumerator",
            "bitfield_clause", "preproc_def", "preproc_function_def", "preproc_if", "preproc_elif", "alignas_qualifier",
            "attribute_specifier", "noexcept", "decltype", "sizeof_expression", "default_method_clause",
            "requires_clause", "optional_parameter_declaration", "gnu_asm_expression", "abstract_array_declarator"}


class Source:
    """path: from the top of the repository; text: bytes; tree: the root node; calls: names of the functions around."""

    def __init__(self, path, text):
        self.path, self.text = path, text
        language = tree_sitter_c.language() if path.endswith((".c", ".h")) else tree_sitter_cpp.language()
        masked = BLANKED.sub(lambda m: re.sub(rb"[^\n]", b" ", m.group()), text)
        self.tree = tree_sitter.Parser(tree_sitter.Language(language)).parse(masked).root_node

    def of(self, node):
        """The node's text."""
        return self.text[node.start_byte:node.end_byte].decode()

    def bodies(self):
        """(name, body) of every function whose body runs: not those that a compiler may have to evaluate."""
        for node in walk(self.tree):
            if node.type != "function_definition" or node.child_by_field_name("body") is None:
                continue
            if self.is_constexpr(node):
                continue
            yield self.name_of(node), node.child_by_field_name("body")

    def is_constexpr(self, node):
        return any(c.type in ("type_qualifier", "storage_class_specifier", "type_specifier") and
                   self.of(c) in ("constexpr", "consteval") for c in node.children)

    def name_of(self, function):
        at = function.child_by_field_name("declarator")
        while at is not None and at.child_by_field_name("declarator") is not None:
            at = at.child_by_field_name("declarator")
        return re.sub(r"\s+", "", self.of(at)) if at is not None else "?"

    def is_constant(self, node):
        """The node itself begins a place where constants are needed."""
        if node.type in CONSTANT:
            return True
        if node.type == "case_statement":
            return False  # its value alone: see runtime()
        if node.type == "declaration":
            return any(self.of(c) in ("static", "constexpr", "typedef", "extern") for c in node.children
                       if c.type in ("storage_class_specifier", "type_qualifier"))
        return node.type == "function_definition"  # a local class's: it is a body of its own

    def runtime(self, body):
        """Every node below a body that stands where run-time expressions may."""
        stack = [body]
        while stack:
            node = stack.pop()
            if self.is_constant(node) or node.is_error:
                continue
            yield node
            skipped = set()
            if node.type == "case_statement" and node.child_by_field_name("value") is not None:
                skipped.add(node.child_by_field_name("value").id)
            if node.type == "if_statement" and any(c.type == "constexpr" for c in node.children):
                skipped.add(node.child_by_field_name("condition").id)
            stack.extend(c for c in reversed(node.children) if c.id not in skipped)


def walk(node):
    """All nodes below and including this one, parents first."""
    stack = [node]
    while stack:
        at = stack.pop()
        yield at
        stack.extend(reversed(at.children))
