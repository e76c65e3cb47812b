"""The tests' own modules can be imported, and the package's plugin for pytest is tried in processes of its own."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
pytest_plugins = ["pytester"]
