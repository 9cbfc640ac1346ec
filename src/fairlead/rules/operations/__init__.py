"""What follows for operations: progress, readiness of objects, releases of Helm."""
