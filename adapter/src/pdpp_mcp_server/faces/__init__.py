"""The two halves of a result: equal in what they tell, each bounded and complete on its own."""
