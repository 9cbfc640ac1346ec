"""What runs: training jobs and their pods, crons, serving jobs."""
