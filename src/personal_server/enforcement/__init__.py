"""Pure decisions of the resource server: the one door in (authorize), the one door out (disclose)."""
