"""The composition root: the only place that wires parts."""
