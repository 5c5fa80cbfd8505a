"""Apple Health: measurements, sleep, workouts, days and routes of an iPhone's export."""
