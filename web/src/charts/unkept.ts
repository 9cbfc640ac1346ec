// Charts of what the built-in series do not keep: without a Prometheus one line stands for all of them. (tests/docs/test_unkept_charts.py holds it against the server.)
export const UNKEPT: ReadonlySet<string> = new Set(["gpu-sm-clock", "gpu-tensor-active", "gpu-pcie", "gpu-nvlink", "gpu-held-down", "gpu-xid-errors", "gpu-ecc-errors", "gpu-remapped-rows"]);
