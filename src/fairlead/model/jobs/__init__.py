"""Workloads: training jobs and their pods, crons, serving jobs."""
