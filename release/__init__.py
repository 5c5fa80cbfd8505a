"""What a release needs, made from a checkout: wheels, program, bundle, list, digests, signature."""
