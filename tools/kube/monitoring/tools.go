//go:build tools

// Package tools names the programs of this module, so that `go mod tidy` keeps what they need.
package tools

import (
	_ "github.com/prometheus-operator/prometheus-operator/cmd/operator"
	_ "github.com/prometheus/prometheus/cmd/prometheus"
)
