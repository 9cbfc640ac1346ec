//go:build tools

// Package tools names the programs of this module, so that `go mod tidy` keeps what they need.
package tools

import (
	_ "sigs.k8s.io/prometheus-adapter/cmd/adapter"
)
