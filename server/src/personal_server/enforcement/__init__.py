"""Pure decisions of the resource server: one door in (authorize), one door out (disclose)."""
