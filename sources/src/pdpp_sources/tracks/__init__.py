"""Recorded tracks and workouts, routes and marked places."""
