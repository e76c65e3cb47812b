"""Has nothing that could be judged."""
ATTENTION = None
