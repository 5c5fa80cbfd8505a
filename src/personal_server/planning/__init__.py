"""Pure: an authorized read becomes a plan. A backend receives plans, never grants or tokens."""
