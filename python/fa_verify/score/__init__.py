"""Judges a folder of candidate kernels, one file each, and puts them into a table.

    python -m fa_verify.score CANDIDATES --task task.json --cases cases.json --require all --out scores

A candidate is a Python file as benchmarks of kernels have them: a class `ModelNew` or `Model` with `forward(q, k, v)`, a
function `attention(q, k, v, causal=..., scale=...)`, or a kernel made by :func:`fa_verify.kernel`. What it has to be able to do
is not its own to say: a :class:`Task` says it. docs/guide/benchmarks.md.
"""

from fa_verify.score._run import Settings, judge_file, judge_folder
from fa_verify.score._table import markdown
from fa_verify.score._task import Task

__all__ = ["Settings", "Task", "judge_file", "judge_folder", "markdown"]
