"""The resource server as a client sees it: the port, its HTTP form, the credential cache."""
