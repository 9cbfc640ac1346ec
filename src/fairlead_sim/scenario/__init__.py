"""What a company has and wants: scenarios, machines, networks, workloads."""
