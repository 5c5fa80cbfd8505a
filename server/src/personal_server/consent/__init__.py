"""Pure decisions of the authorization server: what was asked becomes what is agreed."""
