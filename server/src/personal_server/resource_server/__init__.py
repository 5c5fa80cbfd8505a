"""The routes under /v1: parameters, bearer, responses; one module per resource."""
