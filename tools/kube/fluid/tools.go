//go:build tools

// Package tools names the programs of this module, so that `go mod tidy` keeps what they need.
package tools

import (
	_ "github.com/fluid-cloudnative/fluid/cmd/alluxio"
	_ "github.com/fluid-cloudnative/fluid/cmd/dataset"
)
