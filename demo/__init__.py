"""The main job end to end on real data, told so that a person enjoys reading it."""
